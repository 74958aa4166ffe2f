import type { ActivePreset } from '#world/injected-failures.ts'
import type { Realism } from '#world/proxy.ts'
import { fromBase58, toBase58 } from './base58.ts'
import { readJson, writeJson } from './json.ts'

const slotMs = 400
const abandonedMax = 1_000

type Call = { jsonrpc?: unknown; id?: unknown; method?: unknown; params?: unknown }
type Reply = { id?: unknown; result?: unknown; error?: unknown }
type SendUpstream = (body: string, headers?: Record<string, string>) => Promise<string>
type Abandoned = { signature: string; slot: number; untilMs: number }
type Status = { context: { slot: number }; value: unknown[] }

const callsOf = (body: string): Call[] | undefined => {
  try {
    const parsed = readJson(body)
    const calls = Array.isArray(parsed) ? parsed : [parsed]
    return calls.every((call) => typeof call === 'object' && call !== null) ? (calls as Call[]) : undefined
  } catch {
    return undefined
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const configOf = ({ params }: Call): Record<string, unknown> => {
  const [, settings] = listOf(params)
  return typeof settings === 'object' && settings !== null ? (settings as Record<string, unknown>) : {}
}

/** The first signature identifies a transaction: its bytes follow the count of signatures. */
const signatureOf = (call: Call): string | undefined => {
  const [text] = listOf(call.params)
  if (typeof text !== 'string') return undefined
  const bytes = configOf(call).encoding === 'base64' ? Buffer.from(text, 'base64') : fromBase58(text)
  return bytes === undefined || bytes.length < 65 ? undefined : toBase58(bytes.subarray(1, 65))
}

const unknownBlockhash = {
  code: -32002,
  message: 'Transaction simulation failed: Blockhash not found',
  data: {
    accounts: null,
    err: 'BlockhashNotFound',
    innerInstructions: null,
    loadedAccountsDataSize: 0,
    logs: [],
    replacementBlockhash: null,
    returnData: null,
    unitsConsumed: 0,
  },
}

const count = ({ counts }: ActivePreset, kind: string): void => {
  counts[kind] = (counts[kind] ?? 0) + 1
}

/**
 * Several nodes behind one URL, some of which lag by several slots. Some of them reject a blockhash that they do not
 * know yet, and at times a transaction is confirmed on a fork that is then abandoned.
 */
export const solanaRealism = (nowMs: () => number = Date.now): Realism => {
  const shown = new Map<string, Abandoned>()
  /** A transaction is abandoned once: sent again it lands. */
  const abandoned = new Set<string>()

  const lagHeaders = (preset: ActivePreset): Record<string, string> => {
    if (preset.random() >= preset.setting.lagRate) return {}
    count(preset, 'lagging')
    const slots = 1 + Math.floor((preset.random() * preset.setting.lagMs) / slotMs)
    return { 'x-world-lag-slots': String(slots) }
  }

  const abandon = async (preset: ActivePreset, call: Call, signature: string, sendUpstream: SendUpstream) => {
    const { encoding = 'base58' } = configOf(call)
    const [bytes] = listOf(call.params)
    const params = [bytes, { encoding, sigVerify: true }]
    const reply = readJson(
      await sendUpstream(writeJson({ jsonrpc: '2.0', id: 1, method: 'simulateTransaction', params })),
    ) as { result?: { context: { slot: number }; value: { err: unknown } } }
    // The node itself rejects a transaction that cannot land.
    if (reply.result?.value.err !== null) return false
    const { slot } = reply.result.context
    const untilMs = nowMs() + (0.2 + 0.8 * preset.random()) * preset.setting.droppedMsMax
    shown.set(signature, { signature, slot, untilMs })
    abandoned.add(signature)
    for (const oldest of [...abandoned].slice(0, Math.max(0, abandoned.size - abandonedMax)))
      abandoned.delete(oldest)
    count(preset, 'dropped')
    return true
  }

  /** The answer to a transaction that does not reach the chain this time. */
  const failSend = async (
    preset: ActivePreset,
    call: Call,
    sendUpstream: SendUpstream,
  ): Promise<Omit<Reply, 'id'> | undefined> => {
    const signature = signatureOf(call)
    if (signature === undefined) return undefined
    const { setting, random } = preset
    const drawn = random()
    if (shown.has(signature)) return { result: signature }
    if (drawn < setting.unknownBlockhashRate && configOf(call).skipPreflight !== true) {
      count(preset, 'unknown_blockhash')
      return { error: unknownBlockhash }
    }
    const isChosen = drawn < setting.unknownBlockhashRate + setting.droppedRate && !abandoned.has(signature)
    return isChosen && (await abandon(preset, call, signature, sendUpstream))
      ? { result: signature }
      : undefined
  }

  /** Shows the transactions of the fork until it is abandoned. */
  const withFork = (call: Call, reply: Reply): Reply => {
    const result = reply.result as Status | undefined
    if (call.method !== 'getSignatureStatuses' || !Array.isArray(result?.value)) return reply
    const [signatures] = listOf(call.params)
    const value = result.value.map((status, index) => {
      const found = shown.get(String(listOf(signatures)[index]))
      if (status !== null || !found || found.slot > result.context.slot) return status
      const { slot } = found
      return { confirmationStatus: 'confirmed', confirmations: 1, err: null, slot, status: { Ok: null } }
    })
    return { ...reply, result: { ...result, value } }
  }

  const pruneAbandoned = (): void => {
    for (const [signature, { untilMs }] of shown) if (untilMs <= nowMs()) shown.delete(signature)
  }

  return {
    answer: async ({ preset, body }, sendUpstream) => {
      pruneAbandoned()
      const text = body.toString()
      const calls = callsOf(text)
      if (!calls) return sendUpstream(text)
      const answered = new Map<number, Omit<Reply, 'id'>>()
      for (const [index, call] of calls.entries()) {
        const refused =
          call.method === 'sendTransaction' ? await failSend(preset, call, sendUpstream) : undefined
        if (refused) answered.set(index, refused)
      }
      const sends = calls.some(({ method }) => method === 'sendTransaction' || method === 'requestAirdrop')
      const headers = sends ? {} : lagHeaders(preset)
      if (answered.size === 0 && shown.size === 0) return sendUpstream(text, headers)
      const left = calls.filter((_, index) => !answered.has(index))
      const isBatch = text.trimStart().startsWith('[')
      const replies =
        left.length === 0 ? [] : (readJson(await sendUpstream(writeJson(left), headers)) as Reply[])
      const replyText = calls.map((call, index) => {
        const own = answered.get(index)
        if (own) return { id: call.id ?? null, jsonrpc: '2.0', ...own }
        return withFork(call, replies.shift() ?? { error: unknownBlockhash })
      })
      return writeJson(isBatch ? replyText : replyText[0])
    },
  }
}
