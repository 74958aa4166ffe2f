/** Settings without rate limits for a suite; waits for funds have their own limits. */
export const unlimitedRates = {
  RATE_AUTH: '0',
  RATE_READ: '0',
  RATE_MONEY: '0',
  RATE_EXIT: '0',
  RATE_STREAM: '0',
  RATE_IMAGE: '0',
  RATE_REFUSED: '0',
}
