"""Small records to write and read back."""

from dragoman.run.records import Attempt, DataSummary, EvalRecord, Host, Manifest, SideSize, StepRecord


def a_manifest() -> Manifest:
    side = SideSize("en", raw_bytes=120, raw_lines=4, clean_bytes=100, clean_lines=3, num_tokens=20)
    return Manifest(
        name="trial",
        created=1000.0,
        recipe={"name": "tiny", "optim": {"betas": [0.9, 0.98]}},
        recipe_hash="abc",
        versions={"dragoman": "0.1.0"},
        world_size=2,
        device="cpu",
        precision="fp32",
        num_parameters=1234,
        data=DataSummary("data/toy", "f00d", "en-de", 3, side, side, {"toy": 3}, {"dev": 2}),
        hosts=(Host("anna", "cpu", 2, 2**30, ("V100",)),),
        attempts=(Attempt(1, 1000.0, "dragoman train tiny", 2),),
    )


def a_step(step: int, attempt: int = 1, time: float | None = None, loss: float = 2.0) -> StepRecord:
    at = 1000.0 + step if time is None else time
    return StepRecord(attempt, at, step, loss, loss, 1e-3, 0.5, 90, 100, 4, 0.5)


def an_eval(
    step: int, attempt: int = 1, dev_set: str = "dev", loss: float = 2.0, bleu: float | None = None
) -> EvalRecord:
    return EvalRecord(attempt, 1000.5 + step, step, dev_set, loss, 1.9, bleu, None, None, None, 2, 2, 20, 0.1, 0.2)
