/** Compares an answer of the chat with what a wording wants. */
import type { Answer, Proposal } from './front-door.ts'

type Fields = Readonly<Record<string, string | number | boolean>>
/** One right answer of several: data that is read, orders that are recommended, a question back, or a refusal. */
export type Wanted =
  | { reads: string[]; says?: string[] }
  | { readsAll: string[]; says?: string[] }
  | { proposes: string; fields: Fields }
  | { proposesAll: { operation: string; fields: Fields }[] }
  | { asks: string }
  | { refuses: string }
export type Wording = { kind: string; text: string; right: Wanted[] }
export type Result = 'right' | 'refused' | 'wrong'

export type Names = {
  /** The symbol of a token by its chain and address. */
  symbolOf(chainId: unknown, address: unknown): string | undefined
  decimalsOf(chainId: unknown, address: unknown): number
  /** The asset of an order at the venue. */
  assetOfOrder(orderId: unknown): string | undefined
  /** The question and the outcome that an outcome id means. */
  outcomeOf(outcomeId: unknown): string
}

const near = (found: unknown, wanted: string | number | boolean): boolean =>
  typeof wanted === 'number'
    ? Math.abs(Number(found) - wanted) <= Math.abs(wanted) * 1e-9
    : String(found).toLowerCase() === String(wanted).toLowerCase()

type Leg = { price_usd?: unknown } | undefined

/** The fields of an operation by the words that people use for them. */
function meaningOf({ operation, input }: Proposal, names: Names): Record<string, unknown> {
  const { chain_id_in: chain, chain_id_out: other, token_in: sold, token_out: bought } = input
  const first = (legs: unknown): unknown => (Array.isArray(legs) ? (legs[0] as Leg)?.price_usd : undefined)
  if (operation === 'swap_execute' || operation === 'limit_orders_create') {
    const from = names.symbolOf(chain, sold)
    const amount =
      input.amount === undefined ? undefined : Number(input.amount) / 10 ** names.decimalsOf(chain, sold)
    return {
      from,
      to: names.symbolOf(other ?? chain, bought),
      amount,
      usd: input.amount_usd ?? (from === 'USDC' ? amount : undefined),
      chain,
      to_chain: other ?? chain,
      slippage: input.slippage_bps,
      at: input.price_usd_trigger,
      sl: (input.stop_loss as Leg)?.price_usd,
      tp: (input.take_profit as Leg)?.price_usd,
    }
  }
  return {
    asset: input.asset ?? names.assetOfOrder(input.order_id),
    side: input.side,
    usd:
      input.notional_usd ??
      input.notional_usdc ??
      input.amount_usd ??
      input.amount_usdc ??
      (operation === 'predmkt_order' ? undefined : input.amount),
    size: input.size ?? input.amount_shares,
    leverage: input.leverage,
    type: input.order_type,
    price: input.limit_price ?? input.price,
    tp: input.tp_price ?? first(input.take_profits),
    sl: input.sl_price ?? first(input.stop_losses),
    trail: input.trailing_percentage === undefined ? undefined : Number(input.trailing_percentage) * 100,
    cross: input.is_cross,
    reduce_only: input.reduce_only,
    chain: input.source_chain_id,
    to_chain: input.destination_chain_id,
    token: names.symbolOf(input.chain_id, input.token_address),
    per_day: input.per_day_usd,
    per_tx: input.per_transaction_usd,
    approval: input.approval_above_usd,
    outcome: names.outcomeOf(input.outcome_id),
    query: input.query,
  }
}

/** A part of what is held is a size or an amount; whether it is the right one is checked in other tests. */
const isPart = ({ input }: Proposal, part: unknown): boolean => {
  const said = input.size ?? input.amount ?? input.amount_shares ?? input.amount_usdc ?? undefined
  return part === 1 || (said !== undefined && said !== null)
}

/** What only restricts is done at once, and everything else that changes something is recommended. */
const restricting = ['policy_kill', 'policy_tighten']
const changesOf = ({ proposals, calls }: Answer): Proposal[] => [
  ...proposals,
  ...calls.filter(({ operation }) => restricting.includes(operation)),
]

function isProposed(answer: Answer, operation: string, fields: Fields, names: Names): boolean {
  return changesOf(answer).some((proposal) => {
    if (proposal.operation !== operation) return false
    const found = meaningOf(proposal, names)
    return Object.entries(fields).every(([field, wanted]) => {
      if (field === 'part') return isPart(proposal, wanted)
      if (field === 'gets') return found.usd !== undefined
      if (field === 'says') return answer.text.toLowerCase().includes(String(wanted))
      if (field === 'outcome' || field === 'query')
        return String(found[field]).toLowerCase().includes(String(wanted).toLowerCase())
      return near(found[field], wanted)
    })
  })
}

const saysEach = (text: string, words: readonly string[] = []): boolean =>
  words.every((word) => word.split('/').some((each) => text.toLowerCase().includes(each.toLowerCase())))

/** Whether the answer has figures of the account or of the markets, not only of a refusal. */
export const hasData = ({ citations }: Answer): boolean =>
  citations.some(({ pointer }) => pointer !== '/detail')
const saysPart = ({ text, proposals }: Answer): boolean =>
  proposals.length === 0 && text.includes('Not read, and so not answered: ')
const isOpen = ({ memory, text }: Answer): boolean => memory.pending !== undefined || text.endsWith('?')

function holds(answer: Answer, wanted: Wanted, names: Names): boolean {
  const { text, tools } = answer
  const changes = changesOf(answer)
  const isQuiet = changes.length === 0
  if ('reads' in wanted)
    return isQuiet && tools.some((tool) => wanted.reads.includes(tool)) && saysEach(text, wanted.says)
  if ('readsAll' in wanted)
    return isQuiet && wanted.readsAll.every((tool) => tools.includes(tool)) && saysEach(text, wanted.says)
  if ('proposes' in wanted)
    return changes.length === 1 && isProposed(answer, wanted.proposes, wanted.fields, names)
  if ('proposesAll' in wanted)
    return (
      changes.length === wanted.proposesAll.length &&
      wanted.proposesAll.every(({ operation, fields }) => isProposed(answer, operation, fields, names))
    )
  if ('asks' in wanted) return isQuiet && isOpen(answer) && new RegExp(wanted.asks, 'i').test(text)
  if (wanted.refuses === '') return isQuiet && !hasData(answer)
  return isQuiet && new RegExp(wanted.refuses, 'i').test(text)
}

/** An answer that is not right is wrong where it claims or recommends something, and refused where it says that it cannot. */
export function gradeWording({ right }: Wording, answer: Answer, names: Names): Result {
  if (right.some((wanted) => holds(answer, wanted, names))) return 'right'
  // An answer that names what it has not read claims no more than the rest.
  if (saysPart(answer)) return 'refused'
  const claims =
    changesOf(answer).length > 0 || hasData(answer) || (answer.tools.length > 0 && !isOpen(answer))
  return claims ? 'wrong' : 'refused'
}

/** A refusal says what would work: a wording in quotation marks, choices, or a question. */
export const saysWhatWorks = (text: string): boolean => /"[^"]{2,}"|^\d\. |\?$/m.test(text)

/** Names of operations, fields and paths, and numbers that no person writes. */
export const innerWordsOf = (text: string): string[] =>
  text.match(/`[^`]*`?|\b[a-z]+_[a-z_]+\b|\/v1\S*|\b\d+\.\d{9,}/g) ?? []
