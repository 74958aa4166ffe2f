import { mutationsOf } from './mutation.ts'

const engine = 'src/market/strategies'
const decisions = ['test/market/strategy-decisions.test.ts']
const account = ['test/market/strategy-account.test.ts']
const simulations = ['test/market/strategy-simulation.test.ts']
const days = ['test/market/farming-days.test.ts']
const budget = ['test/identity/strategy-budget.test.ts']

/** What a strategy would decide, count or lose wrongly. */
export const strategyMutations = [
  ...mutationsOf(`${engine}/candle-columns.ts`, decisions, [
    [
      'columns.spanMs > nowMs) at--',
      'columns.spanMs > nowMs + columns.spanMs) at--',
      'a decision reads the candle that is open',
    ],
    ['if (lastMs - firstMs !== (windowCandles - 1) * spanMs) return undefined\n', '', 'a window has a gap'],
  ]),
  ...mutationsOf(`${engine}/window-indicators.ts`, decisions, [
    [
      'minus = ranges === 0 ? 0 : (100 * downs)',
      'minus = ranges === 0 ? 0 : (100 * ups)',
      'the ADX differs from that of reports',
    ],
  ]),
  ...mutationsOf(`${engine}/entry.ts`, decisions, [
    [
      "if (state.foreign.includes(asset)) return hold('foreign_position')\n",
      '',
      'a strategy adds to a foreign position',
    ],
    ['if (isShort && !partial)', 'if (false)', 'a purchase is smaller without a permission'],
    [
      '{ spent: bound, valued: middle }',
      '{ spent: middle, valued: middle }',
      'an order of as much as a limit allows is refused for its slippage',
    ],
  ]),
  ...mutationsOf(
    'src/engines/strategy-terms/guard-config.ts',
    ['src/engines/strategy-terms/guard-config.test.ts'],
    [
      ['guards.on_trip === onTrip &&', '', 'a guard that only ends entries counts as one that closes'],
      ['if (value === undefined) return false', 'if (value === undefined) return true', 'a guard is dropped'],
    ],
  ),
  ...mutationsOf(`${engine}/protective-orders.ts`, decisions, [
    ['const liquidationShareMax = 0.6', 'const liquidationShareMax = 6', 'a stop is beyond the liquidation'],
  ]),
  ...mutationsOf(`${engine}/farming-rule.ts`, days, [
    ['const flatBeforeMs = 5 * 60_000', 'const flatBeforeMs = -60_000', 'a day trade is open over night'],
  ]),
  ...mutationsOf(`${engine}/account.ts`, account, [
    ['gross - fill.feeMicros,', 'gross,', 'an exit costs no fee'],
    ['(held.isLong ? rateUnits : -rateUnits)', 'rateUnits', 'shorts pay the funding that longs pay'],
    [
      'cashMicros: account.cashMicros - lost',
      'cashMicros: account.cashMicros',
      'a liquidation costs nothing',
    ],
  ]),
  ...mutationsOf(`${engine}/matching.ts`, account, [
    ['atMs >= held.targetFromMs', 'true', 'a target is filled before its entry may have been'],
    ['isTouched: target.isMarket', 'isTouched: true', 'a resting target is filled where it is only touched'],
    ['if (held && held.isLong !== isBuy) return matched\n', '', 'an entry turns a position around'],
  ]),
  ...mutationsOf(`${engine}/guards.ts`, account, [
    ['entriesToday: 0, trippedToday: null', 'trippedToday: null', 'the entries of yesterday count today'],
    ['netMicros < 0n ? state.lossesInRow + 1 : 0', 'state.lossesInRow + 1', 'a gain counts as a loss'],
  ]),
  ...mutationsOf(`${engine}/simulation.ts`, simulations, [
    [
      'equityOf(run, input.config) - closingCosts(progress)',
      'equityOf(run, input.config)',
      'what is open at the end costs nothing to close',
    ],
    ['    progress.gaps++\n', '', 'missing candles are not counted'],
  ]),
  ...mutationsOf(`${engine}/strategy-run.ts`, simulations, [
    [
      'config.budgetMicros - account.spentMicros',
      'config.budgetMicros',
      'a strategy spends more than its budget',
    ],
  ]),
  ...mutationsOf(
    `${engine}/exit-sequence.ts`,
    [`${engine}/exit-sequence.test.ts`],
    [
      [
        "if (exitingUnits > 0n) return { step: 'wait' }\n",
        '',
        'a stop is cancelled while the exit is under way',
      ],
    ],
  ),
  ...mutationsOf(
    `${engine}/book-execution.ts`,
    ['test/market/book-execution.test.ts'],
    [
      [
        'level.sizeUnits - (used.get(level.priceUnits) ?? 0n)',
        'level.sizeUnits',
        'a level of the book is taken twice',
      ],
    ],
  ),
  ...mutationsOf(
    `${engine}/decision-record.ts`,
    ['test/market/decision-replay.test.ts'],
    [
      [
        'windows: windows ? Object.fromEntries(bounds) : null',
        'windows: null',
        'a record does not name the candles of its decision',
      ],
    ],
  ),
  ...mutationsOf(
    `${engine}/fill-trades.ts`,
    [`${engine}/fill-trades.test.ts`],
    [
      ['fill.atMs - trade.closedMs <= oneExitMs', 'true', 'exits at different times count as one trade'],
      [
        'fill.isBuy ? costMicros - worth : worth - costMicros',
        'worth - costMicros',
        'a short has the result of a long',
      ],
    ],
  ),
  ...mutationsOf(
    `${engine}/drift.ts`,
    [`${engine}/drift.test.ts`],
    [
      ['    left.delete(same)\n', '', 'two entries are compared with one of the backtest'],
      [
        'isBuy ? price - priceUnits : priceUnits - price',
        'price - priceUnits',
        'a sale that got more counts as worse',
      ],
    ],
  ),
  ...mutationsOf(
    `${engine}/guard-distance.ts`,
    [`${engine}/guard-distance.test.ts`],
    [
      [
        'state.dayStartMicros - equityMicros',
        'state.startMicros - equityMicros',
        'the loss of the day is that of all days',
      ],
    ],
  ),
  ...mutationsOf('src/store/migrations/16-strategies/0006_spend.sql', budget, [
    [
      'x.counted + strategy_spent(x.strategy_id) > x.budget',
      'x.counted > x.budget',
      'runs that order at once exceed the budget of their strategy',
    ],
    [
      "when t.outcome = 'not_executed' then 0",
      'when false then 0',
      'an order without an effect uses the budget up',
    ],
  ]),
  ...mutationsOf('src/durable/accept/acceptance.ts', budget, [
    ["[{ table: 'strategy_spend', rows: [row] }]", '[]', 'orders of a strategy use nothing of its budget'],
  ]),
  ...mutationsOf(
    'src/features/strategies/live-account.ts',
    ['src/features/strategies/live-account.test.ts'],
    [
      ['.filter(({ key }) => !counted.includes(key))', '', 'the parts of one order count as several trades'],
      ['units > held.sizeUnits ? held.sizeUnits : units', 'units', 'an account loses more than it has'],
    ],
  ),
  ...mutationsOf(
    'src/features/strategies/exit-due.ts',
    ['src/features/strategies/exit-due.test.ts'],
    [
      ['? failedExit.reason\n', '? undefined\n', 'an exit that failed is forgotten'],
      [
        "if (strategy.type === 'day_trade_farming' && isOvernight(positions.values(), day)) return again('day_ends')\n",
        '',
        'a day trade that nobody looks at before midnight stays open',
      ],
      ['failed.reason !== reason ||', '', 'an exit waits for the pause of another cause'],
      ['failed.count - 1', 'failed.count', 'what a guard closes is not tried again at once'],
    ],
  ),
  ...mutationsOf(
    'src/features/strategies/live-cursor.ts',
    ['src/features/strategies/live-cursor.test.ts'],
    [
      [
        'Math.min(nowMs, comparedMs) - importMsMax',
        'nowMs - importMsMax',
        'own fills of a long outage are never applied',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/strategies/terms.ts',
    ['src/features/strategies/terms.test.ts'],
    [
      [
        '(market.isDelisted && !allowsDelisted)',
        'market.isDelisted',
        'a delisted market switches off the guards of the others',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/strategies/live-stop-lookup.ts',
    ['src/features/strategies/live-stop-lookup.test.ts'],
    [
      ['isMissing(found.status) :', 'false :', 'a stop that ends unheard is not missed'],
      ['&& streamedMs < nowMs - gapMs', '', 'a stop that ended while a stream was interrupted is not missed'],
    ],
  ),
  ...mutationsOf(
    'src/features/strategies/live-protection.ts',
    ['src/features/strategies/live-protection.test.ts'],
    [
      [
        'isSettled && !isWaiting && covered.all > units',
        'false',
        'exits of a strategy sell what its user owns',
      ],
      ['covered.stops < units', 'false', 'a position stays without its stop'],
    ],
  ),
  ...mutationsOf(
    `${engine}/simulation.ts`,
    ['test/market/guard-parity.test.ts'],
    [['    countTrips(progress, run)\n    return\n', '    return\n', 'a backtest hides a guard']],
  ),
  ...mutationsOf(
    'src/features/strategies/paper-levels.ts',
    ['test/chat/strategy-records.test.ts'],
    [
      [
        'where block_ms < extract(epoch from $1::timestamptz) * 1000',
        'where true',
        'an order on paper takes a level twice after a cleaning',
      ],
    ],
  ),
]
