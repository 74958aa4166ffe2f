import { keccak256, numberToHex } from 'viem'
import type { Rpc } from '#world/evm/rpc.ts'
import { accountOf } from './accounts.ts'
import { chainId, type Hex } from './addresses.ts'
import type {
  AccountName,
  Call,
  Receipt,
  Sender,
  SignedTransaction,
  TransactionState,
} from './chain-terms.ts'
import { reasonOf } from './revert-reason.ts'

const defaultGas = 1_500_000n
/** The node suggests what its last transactions paid: these are the own ones, each replacement of which pays more. */
const tip = 1_000_000_000n
/** A node takes another transaction of the same nonce when it pays a tenth more at least. */
const raised = (fee: bigint): bigint => (fee * 3n) / 2n
const receiptPolls = 600
const receiptPollMs = 20
/** After this many polls the bytes are sent again: a reorganisation or a restarted node may have dropped them. */
const resendEveryPolls = 50
/** Answers of a node that has the bytes or has mined the nonce; `stateOf` knows which. */
const knownAlready = /already (known|imported)|nonce too low|replacement transaction underpriced/i

type RawReceipt = {
  transactionHash: Hex
  blockNumber: Hex
  status: Hex
  logs: { address: Hex; topics: Hex[]; data: Hex }[]
} | null

const readReceipt = (raw: NonNullable<RawReceipt>): Receipt => ({
  hash: raw.transactionHash,
  blockNumber: Number(raw.blockNumber),
  status: raw.status === '0x1' ? 'success' : 'reverted',
  logs: raw.logs.map(({ address, topics, data }) => ({ address, topics, data })),
})

/** One sequence of nonces: those signed here may not have reached the node yet. */
type Sequence = { next: number; fees: Map<number, bigint>; signing: Promise<unknown> }
const feesMax = 1_000

/**
 * Signs and sends in the name of the venue's accounts. Bytes that were signed must be sent at some time, or their nonce
 * be used by another call: a gap holds back all later ones. After a restart, stored ones are sent before new ones are
 * signed.
 */
export const createSender = (rpc: Rpc, chain = chainId): Sender => {
  const sequences = new Map<AccountName, Sequence>()
  const sequenceOf = (name: AccountName): Sequence => {
    const known = sequences.get(name)
    if (known) return known
    const made: Sequence = { next: 0, fees: new Map(), signing: Promise.resolve() }
    sequences.set(name, made)
    return made
  }

  const signNow = async (
    name: AccountName,
    call: Call,
    { nonce: wanted, gas }: { nonce?: number; gas?: bigint },
  ): Promise<SignedTransaction> => {
    const sequence = sequenceOf(name)
    const [block, count] = (await rpc.batch([
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
      { method: 'eth_getTransactionCount', params: [accountOf(name).address, 'pending'] },
    ])) as [{ baseFeePerGas: Hex }, Hex]
    const price = (BigInt(block.baseFeePerGas) + tip) * 2n
    const nonce = wanted ?? Math.max(sequence.next, Number(count))
    const before = sequence.fees.get(nonce) ?? (wanted === undefined ? undefined : price)
    const fee = before === undefined || raised(before) < price ? price : raised(before)
    sequence.next = Math.max(sequence.next, nonce + 1)
    sequence.fees.set(nonce, fee)
    if (sequence.fees.size > feesMax) sequence.fees.delete(sequence.fees.keys().next().value as number)
    const raw = await accountOf(name).signTransaction({
      type: 'eip1559',
      chainId: chain,
      nonce,
      to: call.to,
      data: call.data,
      value: call.value ?? 0n,
      gas: gas ?? call.gas ?? defaultGas,
      maxFeePerGas: fee,
      maxPriorityFeePerGas: fee / 2n,
    })
    return { account: name, nonce, hash: keccak256(raw), raw }
  }

  const sign: Sender['sign'] = (name, call, options = {}) => {
    const sequence = sequenceOf(name)
    const signed = sequence.signing.catch(() => {}).then(() => signNow(name, call, options))
    sequence.signing = signed
    return signed
  }

  const submit: Sender['submit'] = async ({ raw }) => {
    await rpc.call('eth_sendRawTransaction', [raw]).catch((error: Error) => {
      if (!knownAlready.test(error.message)) throw error
    })
  }

  const readState = async ({ account, nonce, hash }: SignedTransaction): Promise<TransactionState> => {
    const address = accountOf(account).address
    const [receipt, found, count] = (await rpc.batch([
      { method: 'eth_getTransactionReceipt', params: [hash] },
      { method: 'eth_getTransactionByHash', params: [hash] },
      { method: 'eth_getTransactionCount', params: [address, 'latest'] },
    ])) as [RawReceipt, object | null, Hex]
    if (receipt) return { state: 'mined', receipt: readReceipt(receipt) }
    if (found) return { state: 'pending' }
    return { state: Number(count) > nonce ? 'replaced' : 'unknown' }
  }

  const stateOf: Sender['stateOf'] = async (transaction) => {
    const found = await readState(transaction)
    // A block that is mined or removed between the answers of one batch shows the transaction in neither place.
    return found.state === 'replaced' ? readState(transaction) : found
  }

  const awaitReceipt = async (transaction: SignedTransaction): Promise<Receipt> => {
    for (let polls = 0; polls < receiptPolls; polls += 1) {
      if (polls % resendEveryPolls === 0) await submit(transaction)
      const found = await stateOf(transaction)
      if (found.state === 'mined') return found.receipt
      if (found.state === 'replaced')
        throw new Error(`${transaction.hash} was replaced by another transaction.`)
      await new Promise((resolve) => setTimeout(resolve, receiptPollMs))
    }
    throw new Error(`${transaction.hash} was not mined in time.`)
  }

  const simulate: Sender['simulate'] = async (from, { to, data, value = 0n, gas = defaultGas }) => {
    try {
      const call = { from, to, data, value: numberToHex(value), gas: numberToHex(gas) }
      await rpc.call('eth_call', [call, 'latest'])
      return undefined
    } catch (error) {
      // A node that is away has refused nothing.
      if (typeof (error as { cause?: { code?: unknown } }).cause?.code !== 'number') throw error
      return reasonOf(error)
    }
  }

  const send: Sender['send'] = async (name, call) => {
    const receipt = await awaitReceipt(await sign(name, call)).catch((error: Error) => {
      // A node that went away may not have the bytes: then their nonce is the next one again.
      sequenceOf(name).next = 0
      throw error
    })
    if (receipt.status === 'success') return receipt
    const reason = await simulate(accountOf(name).address, call)
    throw new Error(`${receipt.hash} was reverted: ${reason ?? 'for a reason that has passed'}.`)
  }

  return { sign, submit, stateOf, send, simulate }
}
