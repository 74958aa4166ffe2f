import type { MistakeSection } from './mistake.ts'

export const spot: MistakeSection = {
  title: 'Spot',
  mistakes: [
    {
      mistake: 'A purchase before the setup',
      send: 'POST /v1/spot_venue/buy',
      body: { asset: 'HYPE', notional_usdc: '50' },
      headers: { authorization: 'Bearer {newcomer_token}' },
      answer: {
        status: 409,
        code: 'setup_incomplete',
        says: 'Trading at the venue is not set up: the trading key is not approved; call POST /v1/perp/setup with {}',
      },
    },
    {
      mistake: 'A market that there is not',
      send: 'POST /v1/spot_venue/buy',
      body: { asset: 'HYPER', notional_usdc: '50' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.asset',
        says: 'There is no spot market HYPER; did you mean HYPE?',
      },
    },
    {
      mistake: 'The notional of perpetuals',
      send: 'POST /v1/spot_venue/buy',
      body: { asset: 'HYPE', notional_usd: '50' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.notional_usd',
        says: 'Extra inputs are not permitted; did you mean `notional_usdc`?',
      },
    },
    {
      mistake: 'A side on a purchase',
      send: 'POST /v1/spot_venue/buy',
      body: { asset: 'HYPE', notional_usdc: '50', side: 'buy' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.side',
        says: 'Extra inputs are not permitted; the fields are `asset`, `size`, `notional_usdc`, `order_type`, `limit_price`, `tif`, `tp_price`, `sl_price`, `slippage_pct`',
      },
    },
    {
      mistake: 'A purchase without an amount',
      send: 'POST /v1/spot_venue/buy',
      body: { asset: 'HYPE' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.size',
        says: 'Exactly one of `size` and `notional_usdc` is required: add one of them',
      },
    },
    {
      mistake: 'A purchase below the minimum',
      send: 'POST /v1/spot_venue/buy',
      body: { asset: 'HYPE', notional_usdc: '2' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.notional_usdc',
        says: 'Input should be worth at least 10 USD: rounded to the lot it is <size>, worth <amount> USD at <price>; use a size of at least <size>',
      },
    },
    {
      mistake: 'A take-profit below the price',
      send: 'POST /v1/spot_venue/buy',
      body: { asset: 'HYPE', notional_usdc: '50', tp_price: '1' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.tp_price',
        says: 'The take-profit of a long must be above the price, now <price>',
      },
    },
    {
      mistake: 'A sale of what is not held',
      send: 'POST /v1/spot_venue/sell',
      body: { asset: 'HYPE', size: '10' },
      answer: {
        status: 409,
        code: 'insufficient_balance',
        says: 'The sale needs 10 HYPE, but only 0 HYPE is available',
      },
    },
    {
      mistake: 'A sale of everything, of which there is nothing',
      send: 'POST /v1/spot_venue/sell',
      body: { asset: 'HYPE' },
      answer: {
        status: 409,
        code: 'insufficient_balance',
        says: 'The sale needs 0.01 HYPE, but only 0 HYPE is available: the smallest lot is 0.01',
      },
    },
  ],
}
