// Copies a text and says on the button whether it did.

const FEEDBACK_MS = 2000;

export async function copyFrom(button, text, say) {
  const label = button.querySelector("span");
  const isCopied = await copyText(text);
  button.focus();
  label.textContent = isCopied ? "Copied" : "Not copied";
  if (isCopied) say("The translation is copied.");
  else say("The browser does not let this page copy: mark the text and copy it.", "error");
  setTimeout(() => { label.textContent = "Copy"; }, FEEDBACK_MS);
}

// A page that came over plain HTTP from another machine has no `navigator.clipboard`.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}
