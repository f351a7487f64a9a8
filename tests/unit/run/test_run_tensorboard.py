from importlib import import_module

from run_samples import a_step, an_eval

from dragoman.run.tensorboard import TensorBoardWriter


def read_scalars(folder):
    module = import_module("tensorboard.backend.event_processing.event_accumulator")
    accumulator = module.EventAccumulator(str(folder.tensorboard_path))
    accumulator.Reload()
    return {
        tag: [(event.step, round(event.value, 4)) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }, accumulator


def test_all_scalars_with_their_times(folder):
    with TensorBoardWriter(folder) as writer:
        writer.write_step(a_step(10))
        writer.write_eval(an_eval(10, bleu=31.5))
        writer.write_eval(an_eval(10, dev_set="news", loss=3.0))
    scalars, accumulator = read_scalars(folder)
    assert scalars == {
        "train/loss": [(10, 2.0)],
        "train/learning_rate": [(10, 0.001)],
        "train/gradient_norm": [(10, 0.5)],
        "speed/steps_per_second": [(10, 2.0)],
        "speed/tokens_per_second": [(10, 200.0)],
        "eval/loss": [(10, 2.0)],
        "eval/bleu": [(10, 31.5)],
        "eval-news/loss": [(10, 3.0)],
    }
    assert accumulator.Scalars("train/loss")[0].wall_time == 1010.0


def test_a_second_attempt_takes_over_where_it_began(folder):
    with TensorBoardWriter(folder) as writer:
        for step in (10, 20, 30):
            writer.write_step(a_step(step))
    with TensorBoardWriter(folder, first_step=11) as writer:
        writer.write_step(a_step(20, loss=1.0))
    assert read_scalars(folder)[0]["train/loss"] == [(10, 2.0), (20, 1.0)]


def test_a_folder_that_cannot_be_written_only_warns(folder, capsys):
    folder.tensorboard_path.write_text("in the way")
    with TensorBoardWriter(folder) as writer:
        writer.write_step(a_step(1))
    assert capsys.readouterr().err.count("training goes on") == 1
