import type { Accepted, CallJournal, Entry } from './call-journal.ts'
import { type Call, changeOf, changingCalls } from './changing-calls.ts'
import { minedOf, pendingOf } from './mined-blocks.ts'
import type { Rpc } from './rpc.ts'
import type { Stillness } from './stillness.ts'

type Hex = `0x${string}`
type Reply = { id?: unknown; result?: unknown; error?: unknown }
type Ask = (body: string) => Promise<string>
type Noted = { call: Call; n: number | undefined; reply: Reply | undefined }

/** Passes calls on to a node, and writes down those that change its chain. */
export type Recorder = {
  isChange: (body: string) => boolean
  /** Answers what the node answered, when all of it is written down. */
  record: (body: string, ask: Ask) => Promise<string>
  /** Writes down transactions that are about to be taken back and sent again; to be called back when they are sent. */
  sendAgain: (raws: readonly Hex[]) => Promise<() => void>
  /** Begins a new file of the journal for a state that is about to be saved; answers what ends the earlier ones. */
  rotate: (rpc: Rpc) => Promise<() => void>
}

type Options = {
  journal: CallJournal
  stillness: Stillness
  rpc: () => Rpc | undefined
  nowMs: () => number
  /** Saves the chain, because something that is written down has been taken back. */
  save: () => Promise<unknown>
  isAutomining: () => boolean
}

/** An address that nobody has: its storage tells, in the state itself, what of the journal the state holds. */
export const journalMark = '0x10ca100000000000000000000000000000000001'
export const markSlots = { file: 0, set: 1 } as const
const word = (value: number) => `0x${value.toString(16).padStart(64, '0')}`

/** With a block per transaction, the block is there within a few milliseconds. */
const minedPausesMs = [0, 1, 2, 4, 8, 16]
/** A long history takes long to save, and nothing is mined meanwhile. */
const heldMsMax = 2_000
const laterMs = 25
const laterMsMax = 5_000

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms).unref())

const repliesOf = (said: string, calls: readonly Call[]): (Reply | undefined)[] => {
  try {
    const parsed = JSON.parse(said) as Reply | Reply[] | null
    const replies = (Array.isArray(parsed) ? parsed : [parsed]).map((each) => each ?? {})
    if (replies.length === calls.length) return replies
    return calls.map(({ id }) => replies.find((each) => each.id === id))
  } catch {
    return calls.map(() => undefined)
  }
}

/** Undefined where the node will refuse what it gets. */
const rawIn = ({ params }: Call): Hex | undefined => {
  const raw: unknown = Array.isArray(params) ? params[0] : undefined
  return typeof raw === 'string' && /^0x(?:[0-9a-f]{2})+$/i.test(raw) ? (raw as Hex) : undefined
}

const hashIn = (result: unknown): Hex | undefined => {
  if (typeof result === 'string') return result as Hex
  return (result as { transactionHash?: Hex } | null | undefined)?.transactionHash
}

export const hashOf = async (call: Accepted): Promise<Hex | undefined> => {
  if ('hash' in call) return call.hash
  if (!('raw' in call)) return undefined
  const { keccak256 } = await import('viem')
  return keccak256(call.raw)
}

/** What the node signed, or the fields where it holds no key of the sender and only takes its word. */
const signedByNode = async (rpc: Rpc, hash: Hex): Promise<Accepted | undefined> => {
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
  const { journal, stillness, nowMs, save, isAutomining } = options
  /** Transactions whose block is not known yet. */
  let waiting = new Map<Hex, number>()
  let following = false
  const takenSeconds = () => Math.floor(nowMs() / 1000)

  const noteMined = async (rpc: Rpc): Promise<void> => {
    for (const [hash, mined] of await minedOf(rpc, [...waiting.keys()])) {
      const n = waiting.get(hash)
      waiting.delete(hash)
      if (n !== undefined) journal.mined(n, mined)
    }
  }

  const followLater = async (): Promise<void> => {
    if (following) return
    following = true
    let pauseMs = laterMs
    while (waiting.size > 0) {
      await pause(pauseMs)
      const rpc = options.rpc()
      if (!rpc) waiting = new Map()
      else await noteMined(rpc).catch(() => {})
      for (const [hash, n] of waiting) if (!journal.has(n)) waiting.delete(hash)
      pauseMs = Math.min(laterMsMax, pauseMs * 1.5)
    }
    following = false
  }

  /** The block is written down before the client hears of the transaction: with it, its effects come back the same. */
  const untilMined = async (sent: readonly { hash: Hex; n: number }[]): Promise<void> => {
    for (const { hash, n } of sent) waiting.set(hash, n)
    const rpc = options.rpc()
    for (const ms of isAutomining() ? minedPausesMs : []) {
      if (!rpc) break
      if (ms > 0) await pause(ms)
      if (stillness.isHeld()) await Promise.race([stillness.settled(), pause(heldMsMax)])
      await noteMined(rpc).catch(() => {})
      if (!sent.some(({ hash }) => waiting.has(hash))) return
    }
    void followLater()
  }

  const noteBefore = (call: Call): number | undefined => {
    const change = changeOf(call)
    const raw = change === 'raw' ? rawIn(call) : undefined
    if (raw) return journal.add({ raw }, takenSeconds())
    if (change !== 'set') return undefined
    return journal.add({ method: call.method as string, params: call.params ?? [] }, takenSeconds())
  }

  const noteSent = async ({ call, n, reply }: Noted): Promise<{ hash: Hex; n: number } | undefined> => {
    const hash = hashIn(reply?.result)
    const rpc = options.rpc()
    if (!hash || !rpc) return undefined
    if (n !== undefined) return { hash, n }
    if (changeOf(call) !== 'node') return undefined
    const accepted = await signedByNode(rpc, hash)
    return accepted && { hash, n: journal.add(accepted, takenSeconds()) }
  }

  const noteAfter = async (noted: readonly Noted[]): Promise<void> => {
    for (const { n, reply } of noted)
      if (n !== undefined && reply) {
        if (reply.error !== undefined) journal.refused(n)
        else journal.accepted(n)
      }
    const done = noted.filter(({ reply }) => reply && reply.error === undefined)
    const setters = done.filter(({ call }) => changeOf(call) === 'set').map(({ n }) => n ?? 0)
    if (setters.length > 0) {
      const params = [journalMark, word(markSlots.set), word(Math.max(...setters))]
      await options.rpc()?.call('anvil_setStorageAt', params)
    }
    const sent = []
    for (const each of done) {
      const change = changeOf(each.call)
      if (change === 'raw' || change === 'node') sent.push(await noteSent(each))
    }
    await untilMined(sent.flatMap((each) => each ?? []))
  }

  const record: Recorder['record'] = async (body, ask) => {
    const calls = changingCalls(body) ?? []
    const changes = new Set(calls.map(changeOf))
    const run = async (): Promise<string> => {
      const numbers = calls.map(noteBefore)
      const said = await ask(body)
      const replies = repliesOf(said, calls)
      await noteAfter(calls.map((call, index) => ({ call, n: numbers[index], reply: replies[index] })))
      return said
    }
    const isDirect = changes.has('set') || changes.has('rewind') || changes.has('mine')
    const said = isDirect ? await stillness.change(run) : await run()
    if (changes.has('rewind')) await save()
    return said
  }

  /** What the save that begins will not hold: transactions that are not in a block. */
  const carry = async (rpc: Rpc, entries: readonly Entry[]): Promise<Set<number>> => {
    const open: { entry: Entry; hash: Hex }[] = []
    for (const entry of entries) {
      const hash = entry.mined ? undefined : await hashOf(entry.call)
      if (hash) open.push({ entry, hash })
    }
    const pending = await pendingOf(
      rpc,
      open.map(({ hash }) => hash),
    )
    const mined = await minedOf(
      rpc,
      open.map(({ hash }) => hash),
    )
    const carried = new Set<number>()
    for (const { entry, hash } of open) {
      const isOnItsWay = !mined.has(hash) && journal.isUnanswered(entry.n)
      if (!pending.has(hash) && !isOnItsWay) continue
      journal.carry(entry)
      carried.add(entry.n)
    }
    return carried
  }

  return {
    isChange: (body) => changingCalls(body) !== undefined,
    record,
    sendAgain: async (raws) => {
      const again = new Map<Hex, number>()
      for (const raw of raws) {
        const n = journal.add({ raw }, takenSeconds())
        const hash = await hashOf({ raw })
        if (hash) again.set(hash, n)
      }
      return () => {
        for (const [hash, n] of again) {
          journal.accepted(n)
          waiting.set(hash, n)
        }
        void followLater()
      }
    },
    rotate: async (rpc) => {
      const entries = journal.entries()
      const file = journal.begin()
      const carried = await carry(rpc, entries)
      await rpc.call('anvil_setStorageAt', [journalMark, word(markSlots.file), word(file)])
      return () => journal.drop(file, carried)
    },
  }
}
