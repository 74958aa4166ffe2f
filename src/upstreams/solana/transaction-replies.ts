import { isRecord } from '#kernel/wire/json.ts'
import type { RpcAnswer } from '#kernel/wire/json-rpc.ts'
import {
  type Account,
  broken,
  integerOf,
  parseAccount,
  parseAddress,
  parseContext,
  parseList,
  parseUnits,
} from './wire.ts'

export type Commitment = 'processed' | 'confirmed' | 'finalized'

/** `failed` means that the transaction is in a block, and changed nothing but the balance of its fee payer. */
export type SignatureStatus = { slot: bigint; commitment: Commitment; failed: boolean }
/** The statuses at the slot of the node that answered; undefined for a signature that this node does not know. */
export type StatusReading = { slot: bigint; statuses: (SignatureStatus | undefined)[] }

export function parseStatuses(result: unknown, count: number): StatusReading {
  const { slot, value } = parseContext(result)
  return { slot, statuses: parseList(value, count).map(statusOf) }
}

function statusOf(value: unknown): SignatureStatus | undefined {
  if (value === null) return undefined
  if (!isRecord(value)) throw broken('a malformed status')
  // Older nodes send no `confirmationStatus`, but still count confirmations; a count of null means that the slot is
  // final.
  const commitment = value.confirmationStatus ?? (value.confirmations === null ? 'finalized' : undefined)
  if (commitment !== 'processed' && commitment !== 'confirmed' && commitment !== 'finalized')
    throw broken('a status without a commitment')
  return { slot: parseUnits(value.slot), commitment, failed: hasError(value) }
}

function hasError(value: Record<string, unknown>): boolean {
  if (!('err' in value)) throw broken('a reply without success or failure')
  return value.err !== null
}

export type HistoryEntry = { signature: string; slot: bigint; failed: boolean }

export function historyOf(result: unknown, limit: number): HistoryEntry[] {
  if (!Array.isArray(result) || result.length > limit) throw broken('no history of an address')
  return result.map((item: unknown) => {
    if (!isRecord(item) || typeof item.signature !== 'string') throw broken('a history without signatures')
    return { signature: item.signature, slot: parseUnits(item.slot), failed: hasError(item) }
  })
}

const reasonOf = (err: unknown): string => JSON.stringify(err).slice(0, 200)

export type Simulation = {
  slot: bigint
  ok: boolean
  reason: string
  units: bigint
  /** The accounts as the transaction leaves them, in the requested order. */
  accounts: (Account | undefined)[]
}

const logLinesMax = 3

export function simulationOf(result: unknown, count: number): Simulation {
  const { slot, value } = parseContext(result)
  if (!isRecord(value)) throw broken('no simulation')
  const failed = hasError(value)
  const logs = Array.isArray(value.logs) ? value.logs.filter((line) => typeof line === 'string') : []
  const reason = [reasonOf(value.err), ...logs.slice(-logLinesMax)].join('; ').slice(0, 600)
  return {
    slot,
    ok: !failed,
    reason: failed ? reason : '',
    units: integerOf(value.unitsConsumed) ?? 0n,
    accounts: failed ? [] : parseList(value.accounts, count).map(parseAccount),
  }
}

export type TokenAmount = {
  accountIndex: number
  mint: string
  owner: string
  amountUnits: bigint
  decimals: number
}
export type LandedTransaction = {
  slot: bigint
  /** The time of the block; undefined if the node has not recorded it. */
  blockSeconds: number | undefined
  /** The bytes of the transaction in base64. */
  raw: string
  /** The error of the transaction; undefined if the transaction succeeded. */
  failure: string | undefined
  feeLamports: bigint
  lamportsBefore: bigint[]
  lamportsAfter: bigint[]
  tokensBefore: TokenAmount[]
  tokensAfter: TokenAmount[]
}

const accountsMax = 256

/** Reads a transaction in a block; undefined if the node has no such transaction at the commitment. */
export function landedOf(result: unknown): LandedTransaction | undefined {
  if (result === null) return undefined
  if (!isRecord(result) || !isRecord(result.meta) || !Array.isArray(result.transaction))
    throw broken('a malformed transaction')
  const [raw, encoding] = result.transaction
  if (typeof raw !== 'string' || encoding !== 'base64') throw broken('a transaction of another encoding')
  const { meta } = result
  const lamportsBefore = amountsOf(meta.preBalances)
  const lamportsAfter = amountsOf(meta.postBalances)
  if (lamportsBefore.length !== lamportsAfter.length) throw broken('balances of different accounts')
  return {
    slot: parseUnits(result.slot),
    blockSeconds:
      result.blockTime === null || result.blockTime === undefined
        ? undefined
        : Number(parseUnits(result.blockTime)),
    raw,
    failure: hasError(meta) ? reasonOf(meta.err) : undefined,
    feeLamports: parseUnits(meta.fee),
    lamportsBefore,
    lamportsAfter,
    tokensBefore: tokenAmountsOf(meta.preTokenBalances, lamportsAfter.length),
    tokensAfter: tokenAmountsOf(meta.postTokenBalances, lamportsAfter.length),
  }
}

function amountsOf(value: unknown): bigint[] {
  if (!Array.isArray(value) || value.length > accountsMax) throw broken('no list of balances')
  return value.map(parseUnits)
}

function tokenAmountsOf(value: unknown, accountCount: number): TokenAmount[] {
  if (!Array.isArray(value) || value.length > accountsMax) throw broken('no list of token balances')
  return value.map((item: unknown) => {
    if (!isRecord(item) || !isRecord(item.uiTokenAmount)) throw broken('a malformed token balance')
    const { amount, decimals } = item.uiTokenAmount
    const accountIndex = Number(parseUnits(item.accountIndex))
    if (accountIndex >= accountCount) throw broken('a token balance of no account')
    return {
      accountIndex,
      mint: parseAddress(item.mint),
      owner: parseAddress(item.owner),
      amountUnits: parseUnits(amount),
      decimals: Number(parseUnits(decimals)),
    }
  })
}

/** `rejected` proves nothing: the same bytes may have been sent before, or may land through another node. */
export type SendVerdict = { verdict: 'accepted' } | { verdict: 'rejected'; reason: string }

export const sendVerdictOf = (answer: RpcAnswer): SendVerdict =>
  'result' in answer || /already (been )?processed/i.test(answer.error.message)
    ? { verdict: 'accepted' }
    : { verdict: 'rejected', reason: answer.error.message.slice(0, 200) }

/** Returns micro-lamports per compute unit that recent transactions on the same accounts paid; a node may know none. */
export function recentPricesOf(answer: RpcAnswer): bigint[] {
  if (!('result' in answer) || !Array.isArray(answer.result)) return []
  return answer.result.slice(0, accountsMax).flatMap((item: unknown) => {
    const price = isRecord(item) ? integerOf(item.prioritizationFee) : undefined
    return price === undefined ? [] : [price]
  })
}
