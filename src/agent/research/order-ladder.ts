/** The sizes of orders whose price impact a report compares. */
export const orderLadder = [
  { usd: '100', label: '100 USD order' },
  { usd: '1000', label: '1,000 USD order' },
  { usd: '10000', label: '10,000 USD order' },
] as const
