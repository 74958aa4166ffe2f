/** Says in the words of a person why a call was refused or could not be read, and what would work. */

/** The name of a read, as words. */
export const sourceWords = (operation: string): string => operation.replaceAll('_', ' ')

const fields: Readonly<Record<string, string>> = {
  amount_usd: 'The amount',
  amount_usdc: 'The amount',
  notional_usd: 'The size',
  notional_usdc: 'The amount',
  size: 'The size',
  amount: 'The amount',
  leverage: 'Leverage',
  limit_price: 'The price',
  price_usd_trigger: 'The price',
  sl_price: 'The stop',
  tp_price: 'The target',
  asset: 'The market',
  order_id: 'The order',
  slippage_bps: 'Slippage',
  slippage_pct: 'Slippage',
}

/** A word that only the interface has: a name in backticks, a path, a method, or a name with underscores. */
const isInner = (text: string): boolean => /`|\/v1\/|\b(POST|GET|PUT|DELETE) |\b[a-z]+_[a-z_]+\b/.test(text)

/** Turns `leverage: Input should be at most 25` into `Leverage should be at most 25`. */
function issueText(issue: string): string {
  const [, path = '', message = issue] = /^([a-z_]+(?:\.[a-z0-9_.]+)?): (.+)$/s.exec(issue) ?? []
  if (path === '') return issue
  const name = fields[path.split('.')[0] ?? ''] ?? 'It'
  const said = message.replace(/ \([^()]*`[^()]*\)/g, '').replace(/^Value error, /, '')
  return /^Input should /.test(said) ? `${name} ${said.slice(6)}` : `${name}: ${said}`
}

/** Keeps the parts of a text that a person understands. */
const plain = (detail: string): string =>
  detail
    .split('; ')
    .map(issueText)
    .flatMap((part) => part.split(/(?<=\.) |: (?=[A-Z`])/))
    .filter((part) => part !== '' && !isInner(part))
    .join('; ')
    .replace(/[.;,\s]+$/, '')

const isPrediction = (operation: string): boolean => operation.startsWith('predmkt')
type Hint = (operation: string) => string
const hints: Readonly<Record<string, Hint>> = {
  policy_denied: () => 'Ask "my limits" for what is allowed.',
  insufficient_balance: () => 'Ask "what do i have" for what there is, and say it with less.',
  setup_incomplete: (operation) =>
    isPrediction(operation)
      ? 'Acknowledge the disclaimer of prediction markets, then say "set up polymarket".'
      : 'Say "set up perps", then "fund perps with" an amount of dollars.',
  disclaimer_required: () =>
    'No chat acknowledges it: on the command line, portico predmkt acknowledge-disclaimer does. Prices are read without it: ask "what can i bet on".',
  no_position: () => 'Ask "my positions" for those that are open.',
  trading_paused: () =>
    'Only a person lifts the kill switch, on the account page; "close all my positions" goes on.',
  entry_unknown: () =>
    'Say a price instead, such as "set a stop loss on my cbbtc at eighty thousand dollars".',
  token_unsafe: () => 'Ask whether it is safe, such as "is aero safe".',
  market_closed: () => 'Ask "list the perp markets" for those that trade.',
  no_route: () => 'Say it with another token or another chain, such as "swap fifty usdc to eth on base".',
  not_found: () => 'Ask "what can you do" for what there is.',
}
/** Returns every text that says what would work. */
export const hintTexts = (): string[] => [
  ...Object.values(hints).flatMap((hint) => ['swap_execute', 'predmkt_order'].map(hint)),
  hintOf('', 'validation'),
  hintOf('', ''),
]

const hintOf = (operation: string, code: string): string =>
  hints[code]?.(operation) ??
  (code === 'validation'
    ? 'Say the order again within that, such as "long eth fifty dollars".'
    : 'Ask again in a moment; "are all systems up" says what answers now.')

export function faultText(
  operation: string,
  { code, detail, isChange = false }: { code: string; detail: string; isChange?: boolean },
): string {
  const reason = plain(detail)
  const begin = isChange
    ? 'That would be refused, so it is not recommended'
    : `It could not be read (${sourceWords(operation)})`
  return `${begin}${reason === '' ? '' : `: ${reason}`}. ${hintOf(operation, code)}`
}
