"""`python -m esimd_soak` and `esimd-soak`."""

from esimd_soak.commands import ending


def main() -> int:
    def work() -> int:
        from esimd_soak.commands.main import main

        return main()

    return ending.run(work)


if __name__ == "__main__":
    raise SystemExit(main())
