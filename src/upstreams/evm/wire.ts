import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { RpcAnswer } from '#kernel/wire/json-rpc.ts'

export type Hex = `0x${string}`

const broken = (what: string) => new Fault('unavailable', `The node answered with ${what}`)

export function parseHex(value: unknown): Hex {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]*$/.test(value)) throw broken('no hex where hex was due')
  return value as Hex
}

export function parseQuantity(value: unknown): bigint {
  const text = parseHex(value)
  if (text.length < 3) throw broken('an empty quantity')
  return BigInt(text)
}

export const hexQuantity = (value: bigint): Hex => `0x${value.toString(16)}`

export type Head = { number: bigint; hash: Hex; timestampSeconds: number; baseFeeWei: bigint }
export type Log = { address: string; topics: Hex[]; data: Hex; index: number }
export type FoundLog = Log & { txHash: Hex; block: bigint }
export type Receipt = {
  txHash: Hex
  block: bigint
  blockHash: Hex
  success: boolean
  gasUsed: bigint
  /** The fee that the sender paid, as far as the receipt contains it; some chains add the cost of the data. */
  feeWei: bigint
  from: string
  logs: Log[]
}

export function headOf(value: unknown): Head {
  if (!isRecord(value)) throw broken('no block')
  return {
    number: parseQuantity(value.number),
    hash: parseHex(value.hash),
    timestampSeconds: Number(parseQuantity(value.timestamp)),
    baseFeeWei: value.baseFeePerGas === undefined ? 0n : parseQuantity(value.baseFeePerGas),
  }
}

export type Transaction = { from: string; to: string | null; valueUnits: bigint }

/** Returns the transaction that a reply shows, or undefined if the node does not know it. */
export function transactionOf(value: unknown): Transaction | undefined {
  if (value === null || value === undefined) return undefined
  if (!isRecord(value)) throw broken('a malformed transaction')
  return {
    from: parseHex(value.from).toLowerCase(),
    to: value.to === null || value.to === undefined ? null : parseHex(value.to).toLowerCase(),
    valueUnits: parseQuantity(value.value),
  }
}

/** Returns the receipt of a transaction, or undefined while the transaction is in no block. */
export function parseReceipt(value: unknown): Receipt | undefined {
  if (value === null) return undefined
  if (!isRecord(value) || !Array.isArray(value.logs)) throw broken('a malformed receipt')
  if (value.blockNumber === null) return undefined
  return {
    txHash: parseHex(value.transactionHash),
    block: parseQuantity(value.blockNumber),
    blockHash: parseHex(value.blockHash),
    success: parseQuantity(value.status) === 1n,
    gasUsed: parseQuantity(value.gasUsed),
    feeWei:
      parseQuantity(value.gasUsed) * parseQuantity(value.effectiveGasPrice ?? '0x0') +
      parseQuantity(value.l1Fee ?? '0x0'),
    from: parseHex(value.from).toLowerCase(),
    logs: value.logs.map(logOf),
  }
}

function logOf(value: unknown): Log {
  if (!isRecord(value) || !Array.isArray(value.topics)) throw broken('a malformed log')
  return {
    address: parseHex(value.address).toLowerCase(),
    topics: value.topics.map(parseHex),
    data: parseHex(value.data),
    index: Number(parseQuantity(value.logIndex)),
  }
}

export function foundLogsOf(value: unknown): FoundLog[] {
  if (!Array.isArray(value)) throw broken('no list of logs')
  return value
    .filter((each) => !(isRecord(each) && each.removed === true))
    .map((each) => ({
      ...logOf(each),
      txHash: parseHex(each.transactionHash),
      block: parseQuantity(each.blockNumber),
    }))
}

/**
 * A node's verdict on a raw transaction. `rejected` means that this node refuses the bytes now and may accept them
 * later. `invalid` means that their gas limit can never be accepted. Neither verdict says what other nodes did with the
 * bytes.
 */
export type SendVerdict =
  | { verdict: 'accepted' }
  | { verdict: 'nonce_used' }
  | { verdict: 'underpriced' }
  | { verdict: 'rejected' | 'invalid'; reason: string }

/** The gas limit of the block or transaction is exceeded or too low. Each node has its own words for it. */
const gasLimitRefusals = [
  /intrinsic ?gas/,
  /floor data gas/,
  /gas ?limit.{0,80}(too high|too low|exceed|greater than|above|at most|larger)/,
  /(exceed|above|greater than|over).{0,80}gas ?(limit|cap)/,
]

export function sendVerdictOf(answer: RpcAnswer): SendVerdict {
  if ('result' in answer) return { verdict: 'accepted' }
  const reason = answer.error.message
  const text = reason.toLowerCase()
  if (/already known|already imported|known transaction|already in mempool|alreadyknown/.test(text))
    return { verdict: 'accepted' }
  if (/nonce too low|nonce.*(already|used)|oldnonce|invalid nonce.*too low/.test(text))
    return { verdict: 'nonce_used' }
  if (/underpriced|fee too low|max fee per gas less than block base fee|replacement/.test(text))
    return { verdict: 'underpriced' }
  return { verdict: gasLimitRefusals.some((each) => each.test(text)) ? 'invalid' : 'rejected', reason }
}
