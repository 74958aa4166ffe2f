/** Settings under which a suite may ask as often as it likes; who waits for money has its own limits. */
export const unlimitedRates = {
  RATE_AUTH: '0',
  RATE_READ: '0',
  RATE_MONEY: '0',
  RATE_EXIT: '0',
  RATE_STREAM: '0',
  RATE_REFUSED: '0',
}
