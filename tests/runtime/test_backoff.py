from hybrid.runtime.backoff import Backoff


def test_pauses_double_up_to_the_longest_and_start_again_after_a_success() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.next_s() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    assert [backoff.next_s(), backoff.next_s()] == [0.5, 1.0]
