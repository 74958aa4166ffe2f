import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { callOne, type EvmNode, tagOf } from './rpc.ts'
import { parseHex, parseQuantity } from './wire.ts'

/** A contract that pays native coins leaves no event; the calls of the transaction show the payment. */

export type BlockTransaction = {
  hash: string
  from: string
  nonce: bigint
  to: string | null
  valueUnits: bigint
  input: string
}

const framesMax = 20_000
/** The calls that move native coins; a delegate call moves none, and only repeats the value of its caller. */
const movingTypes = ['CALL', 'CREATE', 'CREATE2', 'SELFDESTRUCT']

const broken = (what: string) => new Fault('unavailable', `The node answered with ${what}`)

/**
 * Returns what a trace's calls paid to the account, or the net if the account paid too; failed calls move nothing.
 */
export function nativeGainsOf(trace: unknown, owner: string): bigint[] {
  const own = owner.toLowerCase()
  const open = [trace]
  const received: bigint[] = []
  let spentUnits = 0n
  for (let read = 0; open.length > 0; read += 1) {
    const frame = open.pop()
    if (!isRecord(frame) || typeof frame.type !== 'string') throw broken('a malformed trace')
    if (read >= framesMax) throw broken('a trace of too many calls')
    if (frame.error !== undefined) continue
    if (movingTypes.includes(frame.type) && frame.value !== undefined) {
      const valueUnits = parseQuantity(frame.value)
      if (valueUnits > 0n && frame.to !== undefined && parseHex(frame.to).toLowerCase() === own)
        received.push(valueUnits)
      if (parseHex(frame.from).toLowerCase() === own) spentUnits += valueUnits
    }
    if (frame.calls === undefined) continue
    if (!Array.isArray(frame.calls)) throw broken('a malformed trace')
    open.push(...(frame.calls as unknown[]).toReversed())
  }
  if (spentUnits === 0n) return received
  return [received.reduce((sum, units) => sum + units, -spentUnits)]
}

/**
 * Returns the native coins that a transaction paid to an account, or undefined if the node has no traces, or no
 * longer has the state for this transaction.
 */
export async function readNativeGains(
  { rpc }: EvmNode,
  { txHash, owner, timeoutMs }: { txHash: string; owner: string; timeoutMs: number },
): Promise<bigint[] | undefined> {
  const params = [txHash, { tracer: 'callTracer' }]
  // The trace is a separate request, because a provider may refuse a whole batch for this method.
  const own = AbortSignal.timeout(timeoutMs)
  const [answer] = await rpc([{ method: 'debug_traceTransaction', params }], own)
  if (!answer || 'error' in answer) return undefined
  if (answer.result === null) throw broken('no trace yet')
  try {
    return nativeGainsOf(answer.result, owner)
  } catch (fault) {
    // A trace of another form, or one that is cut off, would be the same at the next attempt.
    if (fault instanceof Fault) return undefined
    throw fault
  }
}

export async function readBlockTransactions(node: EvmNode, block: bigint): Promise<BlockTransaction[]> {
  const found = await callOne(node, 'eth_getBlockByNumber', [tagOf(block), true])
  if (!isRecord(found) || !Array.isArray(found.transactions)) throw broken('no block')
  return found.transactions.map((each: unknown) => {
    if (!isRecord(each)) throw broken('a malformed transaction')
    return {
      hash: parseHex(each.hash).toLowerCase(),
      from: parseHex(each.from).toLowerCase(),
      nonce: parseQuantity(each.nonce),
      to: each.to === null || each.to === undefined ? null : parseHex(each.to).toLowerCase(),
      valueUnits: parseQuantity(each.value),
      input: parseHex(each.input).toLowerCase(),
    }
  })
}
