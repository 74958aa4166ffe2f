import type { MistakeSection } from './mistake.ts'

const weekly = 'every Monday at 09:00'
const dca = { type: 'dca', config: { asset: 'ETH', amount_usd: '20' }, schedule: weekly }
const wrong = (at: string, says: string) => ({ status: 422, code: 'validation', at, says })

export const strategies: MistakeSection = {
  title: 'Strategies',
  mistakes: [
    {
      mistake: 'A configuration without its type',
      send: 'POST /schedule_chat',
      body: { query: 'my purchases', config: dca.config, schedule: weekly },
      answer: wrong('body.type', 'Field required: `config` needs the `type` of the strategy'),
    },
    {
      mistake: 'A type without its configuration',
      send: 'POST /schedule_chat',
      body: { type: 'dca', schedule: weekly },
      answer: wrong(
        'body.config',
        'Field required: add `config`, or a `query` that says what the strategy does',
      ),
    },
    {
      mistake: 'A purchase without its amount',
      send: 'POST /schedule_chat',
      body: { ...dca, config: { asset: 'ETH' } },
      answer: wrong(
        'body.config.amount_usd',
        'Field required: a strategy of the type dca needs `amount_usd`',
      ),
    },
    {
      mistake: 'A field of another type',
      send: 'POST /schedule_chat',
      body: { ...dca, config: { ...dca.config, leverage: 3 } },
      answer: wrong('body.config.leverage', 'A strategy of the type dca takes no `leverage`'),
    },
    {
      mistake: 'A purchase without times',
      send: 'POST /schedule_chat',
      body: { type: dca.type, config: dca.config },
      answer: wrong(
        'body.schedule',
        'Field required: a strategy of the type dca acts at the times of `schedule`',
      ),
    },
    {
      mistake: 'Times for a strategy that acts on closes',
      send: 'POST /schedule_chat',
      body: {
        type: 'day_trade_farming',
        config: { asset: 'BTC', order_notional_usd: '200' },
        schedule: 'every hour',
      },
      answer: wrong(
        'body.schedule',
        'A strategy of the type day_trade_farming acts on the closes of its candles and takes no `schedule`',
      ),
    },
    {
      mistake: 'A misspelt market of a strategy',
      send: 'POST /schedule_chat',
      body: { ...dca, config: { asset: 'BTCUSDT', amount_usd: '20' } },
      answer: wrong('body.config.asset', 'There is no perpetual market BTCUSDT; did you mean BTC?'),
    },
    {
      mistake: 'An order below the least of the venue',
      send: 'POST /schedule_chat',
      body: { ...dca, config: { asset: 'ETH', amount_usd: '5' } },
      answer: wrong(
        'body.config.amount_usd',
        'Input should be worth at least <amount> USD, so that an order is worth the 10 USD that the venue takes at least; it is 5 USD',
      ),
    },
    {
      mistake: 'A sentence with words that no strategy has',
      send: 'POST /schedule_chat',
      body: {
        query: 'every Monday at 09:00 buy 20 dollars of ETH on base, and stop when I am down 10 percent',
      },
      answer: wrong(
        'body.query',
        'No strategy says "on base": leave it out, give `config`, or make it a chat by `type: prompt`',
      ),
    },
    {
      mistake: 'A guard of a strategy for a chat',
      send: 'POST /schedule_chat',
      body: { query: 'what do i hold', schedule: weekly, guards: { max_loss_usd: '50' } },
      answer: wrong(
        'body.guards.max_loss_usd',
        'A schedule of the type prompt takes no `max_loss_usd`: the limits of the policy bound its runs',
      ),
    },
    {
      mistake: 'A chat on paper',
      send: 'POST /schedule_chat',
      body: { query: 'what do i hold', schedule: weekly, mode: 'paper' },
      answer: wrong(
        'body.mode',
        'Value error: a schedule of the type prompt is `live`; strategies run on paper',
      ),
    },
    {
      mistake: 'The agent of a chat for a strategy',
      send: 'POST /schedule_chat',
      body: { ...dca, agent: 'ProAgent' },
      answer: wrong('body.agent', 'A strategy of the type dca asks no chat, so it takes no `agent`'),
    },
    {
      mistake: 'Day trades of an asset that has none',
      send: 'POST /schedule_chat',
      body: { type: 'day_trade_farming', config: { asset: 'HYPE', order_notional_usd: '200' } },
      answer: wrong('body.config.asset', 'Day trades are made in BTC, ETH, SOL'),
    },
  ],
}
