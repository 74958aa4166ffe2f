import type { MistakeSection } from './mistake.ts'

const acknowledged = [{ send: 'POST /predmkt/disclaimer/acknowledge', body: {} }]

export const predictions: MistakeSection = {
  title: 'Prediction markets',
  mistakes: [
    {
      mistake: 'A set-up before the disclaimer',
      send: 'POST /predmkt/setup',
      body: {},
      headers: { authorization: 'Bearer {newcomer_token}' },
      answer: {
        status: 409,
        code: 'disclaimer_required',
        says: 'The disclaimer on prediction markets is to be acknowledged first: `predmkt_acknowledge_disclaimer` does that',
      },
    },
    {
      mistake: 'An order before the set-up',
      before: acknowledged,
      send: 'POST /predmkt/order',
      body: { outcome_id: '{outcome}', side: 'BUY', order_type: 'FOK', amount_usd: '5' },
      answer: {
        status: 409,
        code: 'setup_incomplete',
        says: 'The set-up lacks key, wallet: `predmkt_setup` completes it',
      },
    },
    {
      mistake: 'An outcome by its name',
      send: 'POST /predmkt/order',
      body: { outcome_id: 'yes', side: 'BUY', price: '0.5', size: '10' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.outcome_id',
        says: 'String has the wrong form: The outcome, by its id in the list of markets, such as <example>',
      },
    },
    {
      mistake: 'An outcome that there is not',
      send: 'POST /predmkt/quote',
      body: { outcome_id: '7', side: 'BUY', amount_usd: '5' },
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such outcome; `predmkt_markets` lists those that exist',
      },
    },
    {
      mistake: 'A side in lower case',
      send: 'POST /predmkt/order',
      body: { outcome_id: '{outcome}', side: 'buy', price: '0.5', size: '10' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.side',
        says: "Input should be 'BUY' or 'SELL'; did you mean 'BUY'?",
      },
    },
    {
      mistake: 'A price in percent',
      send: 'POST /predmkt/order',
      body: { outcome_id: '{outcome}', side: 'BUY', price: '62', size: '10' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.price',
        says: 'Input should be less than or equal to 1 (Limit price of GTC and GTD, on the tick of the market; for FOK and FAK another name of `worst_price`, in USD for one share: above 0 and below 1)',
      },
    },
    {
      mistake: 'A limit order without a price',
      before: acknowledged,
      send: 'POST /predmkt/order',
      body: { outcome_id: '{outcome}', side: 'BUY', size: '10' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.price',
        says: 'GTC and GTD orders need a limit price',
      },
    },
    {
      mistake: 'Dollars for a limit order',
      before: acknowledged,
      send: 'POST /predmkt/order',
      body: { outcome_id: '{outcome}', side: 'BUY', price: '0.5', amount_usd: '5' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.amount_usd',
        says: '`amount_usd` belongs to FOK and FAK orders; GTC and GTD take `price` and `size`',
      },
    },
    {
      mistake: 'A stop-loss on a sale',
      before: acknowledged,
      send: 'POST /predmkt/order',
      body: { outcome_id: '{outcome}', side: 'SELL', price: '0.5', size: '10', stop_loss_price: '0.4' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.stop_loss_price',
        says: 'Only a purchase has a take-profit or a stop-loss',
      },
    },
    {
      mistake: 'A sale in dollars',
      send: 'POST /predmkt/quote',
      body: { outcome_id: '{outcome}', side: 'SELL', amount_usd: '5' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.amount_usd',
        says: 'A sale takes `amount_shares`',
      },
    },
    {
      mistake: 'A withdrawal by the name of a funding',
      send: 'POST /predmkt/withdraw',
      body: { amount_usd: '5' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.amount_usdc',
        says: 'Field required: rename `amount_usd` to `amount_usdc`',
      },
    },
    {
      mistake: 'A redemption of nothing',
      send: 'POST /predmkt/redeem',
      body: {},
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.condition_id',
        says: 'Exactly one of `condition_id` and `all` is required: add one of them',
      },
    },
    {
      mistake: 'A cancel of one order and of all',
      send: 'POST /predmkt/order/cancel',
      body: { order_id: '0x01', cancel_all: true },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.order_id',
        says: 'Exactly one of `order_id` and `cancel_all` is required: leave one of them out',
      },
    },
  ],
}
