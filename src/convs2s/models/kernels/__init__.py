"""Operations that cost most of the time, each beside what it stands for."""
