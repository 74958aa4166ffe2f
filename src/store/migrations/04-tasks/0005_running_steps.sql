-- Waits for the commits of steps that had begun with the function of before; it is held for no longer than that.
lock table task in share mode;
