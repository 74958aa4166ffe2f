import { mutationsOf } from './mutation.ts'

const backtests = ['test/market/backtest.test.ts']
const statistics = ['test/market/statistics.test.ts']
const indicators = ['test/market/indicators.test.ts']
const claims = ['test/market/claims.test.ts']
const reports = ['test/market/report.test.ts']
const research = ['test/market/research.test.ts']
const files = ['test/chat/files.test.ts']
const market = 'src/market'
const reporting = 'src/agent/research'
const history = ['test/venue/market-history.test.ts']

/** What a report or an analysis of a market would say wrongly. */
export const marketMutations = [
  ...mutationsOf(`${market}/trade-simulation.ts`, backtests, [
    [
      'rule.decide(candles, set, at - 1)',
      'rule.decide(candles, set, at)',
      'a backtest decides on a close that has not happened',
    ],
    [
      'candle.open * (1 + signOf(side)',
      'candle.close * (1 + signOf(side)',
      'a backtest is filled at the close of the candle',
    ],
    [
      'if (low <= stop) return',
      'if (high < target && low <= stop) return',
      'the target counts where one candle reaches both',
    ],
    ['Math.min(stop, open)', 'stop', 'a gap beyond the stop is filled at the stop'],
    ['sign * fundingPaid(', 'fundingPaid(', 'shorts pay the funding that longs pay'],
    [
      'atMs > fromMs && atMs <= toMs',
      'atMs >= fromMs && atMs <= toMs',
      'funding is paid for the hour before the entry',
    ],
    ['- fees - funding', '- funding', 'a backtest has no fees'],
  ]),
  ...mutationsOf(`${market}/backtest-result.ts`, backtests, [
    ['trades < tradesMin || !expectancy', '!expectancy', 'a handful of trades is judged'],
  ]),
  ...mutationsOf(`${market}/candle.ts`, statistics, [
    ['candle.endMs <= nowMs', 'candle.startMs <= nowMs', 'the open candle counts as closed'],
  ]),
  ...mutationsOf(`${market}/statistics.ts`, statistics, [
    ['sum / (values.length - 1))', 'sum / values.length)', 'the deviation is that of a whole population'],
    ['if (value > peak) peakAt = at', 'if (value < peak) peakAt = at', 'a drawdown begins at a low'],
  ]),
  ...mutationsOf(`${market}/levels.ts`, statistics, [
    [
      "price < close ? 'support' : 'resistance'",
      "price > close ? 'support' : 'resistance'",
      'support is above the price',
    ],
  ]),
  ...mutationsOf(`${market}/indicators.ts`, indicators, [
    [
      'loss === 0 ? 100 : 100 - 100 / (1 + gain / loss)',
      'loss === 0 ? 100 : 100 / (1 + gain / loss)',
      'the RSI of a rising market is low',
    ],
    ['if (today !== day)', 'if (day !== day)', 'the average price of the day never begins anew'],
  ]),
  ...mutationsOf(`${market}/indicator-list.ts`, indicators, [
    ['if (at + 1 < candlesMinOf(id)) return undefined', '', 'an average of a few candles is printed'],
  ]),
  ...mutationsOf(`${reporting}/claims-check.ts`, claims, [
    [
      'difference * 2n <= step && difference * 20n <= size',
      'true',
      'a sentence passes with another number than its claim',
    ],
    ['difference * 2n <= step &&', '', 'a number may be off by a twentieth'],
    [
      'if (open) return wrong(`${open.text} has no mark`)\n      open = found',
      'open = found',
      'a number passes by the mark of the next one',
    ],
    [
      '  if (open) return wrong(`${open.text} has no mark`)\n  const words',
      '  const words',
      'the last number of a sentence needs no mark',
    ],
    [
      'if (!claim) return wrong(`there is no claim ${cited[0]}`)',
      'if (!claim) return { ok: true }',
      'the mark of no claim passes',
    ],
    [
      "if (foreignNumeral.test(sentence)) return wrong('a number of unknown form')",
      '',
      'numerals of other scripts need no mark',
    ],
  ]),
  ...mutationsOf(`${market}/figure-text.ts`, claims, [
    [".replace(/[^\\p{L}\\p{N} .,'&/+-]/gu, ' ')", '', 'the name of a token writes marks and markup'],
    ['`"${plainName(value)}"`', 'plainName(value)', 'a name of a stranger reads as a word of the report'],
    ['ownWord.test(value) ? ', 'true ? ', 'a sentence of a stranger passes as a word of the gateway'],
  ]),
  ...mutationsOf(`${reporting}/trade-proposal.ts`, research, [
    ["if (rule.verdict?.value !== 'positive')", 'if (false)', 'a rule without an edge recommends a trade'],
    [
      'Number(notional.value) < market.orderUsdMin',
      'false',
      'a trade is recommended that the venue does not take',
    ],
  ]),
  ...mutationsOf(`${reporting}/verdict-criteria.ts`, research, [
    [
      "if (effects.includes('unsafe')) return 'avoid'",
      '',
      'a token that cannot be sold is recommended for its trend',
    ],
  ]),
  ...mutationsOf(`${reporting}/order-book-formulas.ts`, research, [
    [
      'return undefined\n}\n\nexport const bookFormulas',
      'return usd / size\n}\n\nexport const bookFormulas',
      'an order that the book cannot fill has a cost',
    ],
  ]),
  ...mutationsOf(`${reporting}/renumber-claims.ts`, research, [
    [
      'isClaimId(input) ? newId(input) : input',
      'input',
      'a claim is computed from the claims of another number',
    ],
  ]),
  ...mutationsOf('src/features/chat/turn-files.ts', files, [
    [
      'if (known.some((file) => file.name === name)) return\n',
      '',
      'an answer that runs again stores its files again',
    ],
    [
      'known.length >= filesMax || total > turnBytesMax',
      'known.length >= filesMax',
      'an answer stores files without a limit',
    ],
    [
      "from task where id = $1 and status = 'running' and version = $5",
      'from task where id = $1 and $5 > 0',
      'an instance that has lost the answer adds files to it',
    ],
  ]),
  ...mutationsOf('src/upstreams/hyperliquid/market-history.ts', history, [
    ['rates.length < ratesPerPage || !last', 'true', 'only the first page of funding is read'],
    [
      "'view', { owner, itemsMax: count + 1 })",
      "'view', { itemsMax: count + 1 })",
      'the reports of one user take the budget of all',
    ],
  ]),
  ...mutationsOf(`${reporting}/csv.ts`, reports, [
    [
      "formula.test(value) && !number.test(value) ? `'${value}` : value",
      'value',
      'a spreadsheet runs a cell of a report',
    ],
  ]),
]
