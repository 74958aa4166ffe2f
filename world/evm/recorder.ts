import type { AcceptedCall, CallJournal } from './call-journal.ts'
import { type Call, changeKind, changingCalls } from './changing-calls.ts'
import { hashOf, journalMarkerAddress, markerSlots, rotateJournal, word } from './journal-rotation.ts'
import type { Rpc } from './rpc.ts'
import type { StateLock } from './state-lock.ts'
import { unminedTransactions } from './unmined-transactions.ts'

type Hex = `0x${string}`
type Reply = { id?: unknown; result?: unknown; error?: unknown }
type SendUpstream = (body: string) => Promise<string>
type RecordedCall = { call: Call; n: number | undefined; reply: Reply | undefined }

/** Forwards calls to a node, and records those that change its chain. */
export type Recorder = {
  isChange: (body: string) => boolean
  /** Whether a call changes the chain, or can show a transaction whose block is not recorded yet. */
  mustRecord: (body: string) => boolean
  /** Returns the node's answer when all that it shows is recorded. */
  record: (body: string, sendUpstream: SendUpstream) => Promise<string>
  /**
   * Records transactions that are about to be removed and sent again; call the returned function after they were sent.
   */
  recordResend: (raws: readonly Hex[]) => Promise<() => void>
  /**
   * Begins a new journal file for a state that is about to be saved; returns the function that removes the earlier
   * files.
   */
  rotate: (rpc: Rpc) => Promise<() => void>
}

type Options = {
  journal: CallJournal
  stateLock: StateLock
  rpc: () => Rpc | undefined
  nowMs: () => number
  /** Saves the chain because recorded blocks were removed. */
  save: () => Promise<unknown>
  isAutomining: () => boolean
}

/** With one block per transaction, the block is available within a few milliseconds. */
const minedPausesMs = [0, 1, 2, 4, 8, 16]
/** A long history takes long to save, and no block is mined meanwhile. */
const lockedMsMax = 2_000

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms).unref())

const repliesOf = (replyText: string, calls: readonly Call[]): (Reply | undefined)[] => {
  try {
    const parsed = JSON.parse(replyText) as Reply | Reply[] | null
    const replies = (Array.isArray(parsed) ? parsed : [parsed]).map((each) => each ?? {})
    if (replies.length === calls.length) return replies
    return calls.map(({ id }) => replies.find((each) => each.id === id))
  } catch {
    return calls.map(() => undefined)
  }
}

/** The bytes of the transaction; undefined where the node will reject the call. */
const rawTransactionOf = ({ params }: Call): Hex | undefined => {
  const raw: unknown = Array.isArray(params) ? params[0] : undefined
  return typeof raw === 'string' && /^0x(?:[0-9a-f]{2})+$/i.test(raw) ? (raw as Hex) : undefined
}

const hashIn = (result: unknown): Hex | undefined => {
  if (typeof result === 'string') return result as Hex
  return (result as { transactionHash?: Hex } | null | undefined)?.transactionHash
}

/**
 * The transaction that the node signed, or its fields where the node holds no key of the sender and accepts it
 * unsigned.
 */
const signedByNode = async (rpc: Rpc, hash: Hex): Promise<AcceptedCall | undefined> => {
  const [raw, fields] = (await rpc.batch([
    { method: 'eth_getRawTransactionByHash', params: [hash] },
    { method: 'eth_getTransactionByHash', params: [hash] },
  ])) as [Hex | null, Record<string, unknown> | null]
  if (!raw || !fields) return undefined
  const { recoverTransactionAddress } = await import('viem')
  const signer = await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` }).catch(
    () => undefined,
  )
  if (signer?.toLowerCase() === fields.from) return { raw }
  const { from, to, input, value, gas, nonce, maxFeePerGas, maxPriorityFeePerGas, gasPrice } = fields
  const fees = maxFeePerGas === undefined ? { gasPrice } : { maxFeePerGas, maxPriorityFeePerGas }
  return { unsigned: { from, ...(to === null ? {} : { to }), input, value, gas, nonce, ...fees }, hash }
}

export const recorder = (options: Options): Recorder => {
  const { journal, stateLock, nowMs, save, isAutomining } = options
  const takenSeconds = () => Math.floor(nowMs() / 1000)
  const unmined = unminedTransactions({ journal, rpc: options.rpc })

  /** The block is recorded before the client gets the answer: a replay then has the same effects. */
  const waitUntilMined = async (sent: readonly { hash: Hex; n: number }[]): Promise<void> => {
    for (const { hash, n } of sent) unmined.add(hash, n)
    const rpc = options.rpc()
    for (const ms of isAutomining() ? minedPausesMs : []) {
      if (!rpc) break
      if (ms > 0) await pause(ms)
      if (stateLock.isLocked()) await Promise.race([stateLock.whenUnlocked(), pause(lockedMsMax)])
      await unmined.record(rpc).catch(() => {})
      if (!sent.some(({ hash }) => unmined.has(hash))) return
    }
    void unmined.poll()
  }

  const recordBefore = async (call: Call): Promise<number | undefined> => {
    const change = changeKind(call)
    const raw = change === 'raw' ? rawTransactionOf(call) : undefined
    if (raw) return unmined.expect(raw, journal.add({ raw }, takenSeconds()))
    if (change !== 'set') return undefined
    return journal.add({ method: call.method as string, params: call.params ?? [] }, takenSeconds())
  }

  const recordSent = async ({
    call,
    n,
    reply,
  }: RecordedCall): Promise<{ hash: Hex; n: number } | undefined> => {
    const hash = hashIn(reply?.result)
    const rpc = options.rpc()
    if (!hash || !rpc) return undefined
    if (n !== undefined) return { hash, n }
    if (changeKind(call) !== 'node') return undefined
    const accepted = await signedByNode(rpc, hash)
    return accepted && { hash, n: journal.add(accepted, takenSeconds()) }
  }

  const recordAfter = async (recorded: readonly RecordedCall[]): Promise<void> => {
    for (const { n, reply } of recorded)
      if (n !== undefined && reply) {
        if (reply.error === undefined) journal.markAnswered(n)
        else {
          journal.markRejected(n)
          unmined.forget(n)
        }
      }
    const done = recorded.filter(({ reply }) => reply && reply.error === undefined)
    const setters = done.filter(({ call }) => changeKind(call) === 'set').map(({ n }) => n ?? 0)
    if (setters.length > 0) {
      const params = [journalMarkerAddress, word(markerSlots.set), word(Math.max(...setters))]
      await options.rpc()?.call('anvil_setStorageAt', params)
    }
    const sent = []
    for (const each of done) {
      const change = changeKind(each.call)
      if (change === 'raw' || change === 'node') sent.push(await recordSent(each))
    }
    await waitUntilMined(sent.flatMap((each) => each ?? []))
  }

  /** A replay repeats a recorded block with its time; a client that has seen another one would find other effects. */
  const recordRead: Recorder['record'] = async (body, sendUpstream) => {
    const replyText = await sendUpstream(body)
    const rpc = options.rpc()
    if (rpc) await unmined.record(rpc)
    return replyText
  }

  const record: Recorder['record'] = async (body, sendUpstream) => {
    const calls = changingCalls(body)
    if (!calls) return recordRead(body, sendUpstream)
    const changes = new Set(calls.map(changeKind))
    const run = async (): Promise<string> => {
      const numbers: (number | undefined)[] = []
      for (const call of calls) numbers.push(await recordBefore(call))
      const replyText = await sendUpstream(body).catch((error: unknown) => {
        // A node that does not answer may have the transactions.
        void unmined.poll()
        throw error
      })
      const replies = repliesOf(replyText, calls)
      await recordAfter(calls.map((call, index) => ({ call, n: numbers[index], reply: replies[index] })))
      return replyText
    }
    const isDirect = changes.has('set') || changes.has('rewind') || changes.has('mine')
    const replyText = isDirect ? await stateLock.runShared(run) : await run()
    if (changes.has('rewind')) await save()
    return replyText
  }

  return {
    isChange: (body) => changingCalls(body) !== undefined,
    mustRecord: (body) => !unmined.isEmpty() || changingCalls(body) !== undefined,
    record,
    recordResend: async (raws) => {
      const resent = new Map<Hex, number>()
      for (const raw of raws) {
        const n = journal.add({ raw }, takenSeconds())
        const hash = await hashOf({ raw })
        if (hash) resent.set(hash, n)
      }
      return () => {
        for (const [hash, n] of resent) {
          journal.markRemoved(hash)
          journal.markAnswered(n)
          unmined.add(hash, n)
        }
        void unmined.poll()
      }
    },
    rotate: (rpc) => rotateJournal(journal, rpc),
  }
}
