import type { AcceptedCall, CallJournal } from './call-journal.ts'
import { type Call, changeKind, changingCalls } from './changing-calls.ts'
import { hashOf, journalMarkerAddress, markerSlots, rotateJournal, word } from './journal-rotation.ts'
import type { Rpc } from './rpc.ts'
import type { StateLock } from './state-lock.ts'
import { unminedTransactions } from './unmined-transactions.ts'

type Hex = `0x${string}`
type Reply = { id?: unknown; result?: unknown; error?: unknown }
type SendUpstream = (body: string) => Promise<string>
type Sent = { hash: Hex; n: number }
/** `n` is the number of its entry, which only what is recorded before it is sent has. */
type RecordedCall = { call: Call; hash: Hex | undefined; n: number | undefined }

export type Resend = { removed: () => void; ended: () => void }

/** Forwards calls to a node, and records those that change its chain. */
export type Recorder = {
  isChange: (body: string) => boolean
  /** Sends a body that changes the chain, and returns the node's answer when its transactions are recorded. */
  record: (body: string, sendUpstream: SendUpstream) => Promise<string>
  /**
   * Records the blocks that an answer of the node may show; undefined if all are recorded. Call it between the answer and
   * its first byte to a client: a replay repeats a recorded block with its time, and a client that has seen another one
   * would find other effects.
   */
  recordShown: () => Promise<void> | undefined
  /**
   * Records transactions that are about to be removed and sent again. Call `removed` after they were sent, and `ended`
   * when those that the node refused were sent once more: until then none of them is given up.
   */
  recordResend: (raws: readonly Hex[]) => Promise<Resend>
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

const hashOfRawTransaction = async (call: Call): Promise<Hex | undefined> => {
  const raw = changeKind(call) === 'raw' ? rawTransactionOf(call) : undefined
  return raw && (await hashOf({ raw }))
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

const markSetters = async (rpc: Rpc | undefined, setters: readonly number[]): Promise<void> => {
  const params = [journalMarkerAddress, word(markerSlots.set), word(Math.max(...setters))]
  await rpc?.call('anvil_setStorageAt', params)
}

type ResendDeps = {
  journal: CallJournal
  unmined: ReturnType<typeof unminedTransactions>
  takenSeconds: number
}

const recordResend = async (
  raws: readonly Hex[],
  { journal, unmined, takenSeconds }: ResendDeps,
): Promise<Resend> => {
  const resent = new Map<Hex, number>()
  for (const raw of raws) {
    const n = journal.add({ raw }, takenSeconds)
    const hash = await hashOf({ raw })
    if (hash) resent.set(hash, n)
  }
  return {
    removed: () => {
      for (const [hash, n] of resent) {
        journal.markRemoved(hash)
        unmined.replace(hash, n)
      }
      void unmined.poll()
    },
    ended: () => {
      for (const n of resent.values()) journal.markAnswered(n)
    },
  }
}

export const recorder = (options: Options): Recorder => {
  const { journal, stateLock, nowMs, save, isAutomining } = options
  const takenSeconds = () => Math.floor(nowMs() / 1000)
  const unmined = unminedTransactions({ journal, rpc: options.rpc })
  /** Transactions that the node signs are known only with its answer. */
  const signing = new Set<Promise<unknown>>()

  /** The block is recorded before the client gets the answer: a replay then has the same effects. */
  const waitUntilMined = async (sent: readonly Sent[]): Promise<void> => {
    const rpc = options.rpc()
    for (const ms of isAutomining() ? minedPausesMs : [0]) {
      if (!rpc) break
      if (ms > 0) await pause(ms)
      if (stateLock.isLocked()) await Promise.race([stateLock.whenUnlocked(), pause(lockedMsMax)])
      await unmined.record(rpc).catch(() => {})
      if (!sent.some(({ hash }) => unmined.has(hash))) return
    }
  }

  const recordBefore = (call: Call, hash: Hex | undefined): RecordedCall => {
    if (!hash && changeKind(call) !== 'set') return { call, hash, n: undefined }
    const { method, params = [] } = call
    const accepted = hash ? { raw: rawTransactionOf(call) as Hex } : { method: method as string, params }
    const n = journal.add(accepted, takenSeconds())
    if (hash) unmined.add(hash, n)
    return { call, hash, n }
  }

  const recordSignedByNode = async ({ result }: Reply): Promise<Sent | undefined> => {
    const hash = hashIn(result)
    const rpc = options.rpc()
    const accepted = hash && rpc ? await signedByNode(rpc, hash) : undefined
    if (!hash || !accepted) return undefined
    const n = journal.add(accepted, takenSeconds())
    journal.markAnswered(n)
    unmined.add(hash, n)
    return { hash, n }
  }

  const recordAfter = async (
    recorded: readonly RecordedCall[],
    replies: readonly (Reply | undefined)[],
  ): Promise<void> => {
    const sent: Sent[] = []
    const rejected: Sent[] = []
    const setters: number[] = []
    for (const [index, { call, hash, n }] of recorded.entries()) {
      const reply = replies[index]
      const isDone = reply !== undefined && reply.error === undefined
      if (n !== undefined) journal.markAnswered(n)
      if (hash && n !== undefined) (isDone || !reply ? sent : rejected).push({ hash, n })
      else if (n !== undefined && isDone) setters.push(n)
      else if (n !== undefined && reply) journal.markRejected(n)
      else if (isDone && changeKind(call) === 'node') {
        const signed = await recordSignedByNode(reply)
        if (signed) sent.push(signed)
      }
    }
    if (setters.length > 0) await markSetters(options.rpc(), setters)
    await unmined.forgetUnknown(rejected)
    await waitUntilMined([...sent, ...rejected])
  }

  const record: Recorder['record'] = async (body, sendUpstream) => {
    const calls = changingCalls(body) ?? []
    const changes = new Set(calls.map(changeKind))
    const run = async (): Promise<string> => {
      const hashes = await Promise.all(calls.map(hashOfRawTransaction))
      // Nothing waits from here to the send: the order of the journal is the order in which the node gets the calls.
      const recorded = calls.map((call, index) => recordBefore(call, hashes[index]))
      try {
        const replyText = await sendUpstream(body)
        await recordAfter(recorded, repliesOf(replyText, calls))
        return replyText
      } finally {
        for (const { n } of recorded) if (n !== undefined) journal.markAnswered(n)
        // A node that does not answer may have the transactions.
        if (!unmined.isEmpty()) void unmined.poll()
      }
    }
    const isDirect = changes.has('set') || changes.has('rewind') || changes.has('mine')
    const running = isDirect ? stateLock.runShared(run) : run()
    const ended = running.catch(() => {})
    if (changes.has('node')) signing.add(ended)
    const replyText = await running.finally(() => signing.delete(ended))
    if (changes.has('rewind')) await save()
    return replyText
  }

  const recordVisible = async (): Promise<void> => {
    await Promise.all(signing)
    if (unmined.isEmpty()) return
    const rpc = options.rpc()
    if (!rpc) throw new Error('The node is down.')
    await unmined.record(rpc)
  }

  return {
    isChange: (body) => changingCalls(body) !== undefined,
    record,
    recordShown: () => (unmined.isEmpty() && signing.size === 0 ? undefined : recordVisible()),
    recordResend: (raws) => recordResend(raws, { journal, unmined, takenSeconds: takenSeconds() }),
    rotate: (rpc) => rotateJournal(journal, rpc),
  }
}
