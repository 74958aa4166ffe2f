import type { ActivePreset, FailureInjector } from '#world/injected-failures.ts'
import type { Realism } from '#world/proxy.ts'
import { headHistory, type RpcCall, type RpcReply, viewAtHead } from './lagging-view.ts'
import type { EvmNode } from './node.ts'

/** Well within the states that the node keeps. */
const blocksBehindMax = 32
/** A client has usually seen the receipt by then. */
const reorgAfterMsMax = 400

const callsOf = (body: string): RpcCall[] | undefined => {
  try {
    const parsed = JSON.parse(body) as RpcCall | RpcCall[] | null
    if (parsed === null || typeof parsed !== 'object') return undefined
    return Array.isArray(parsed) ? parsed : [parsed]
  } catch {
    return undefined
  }
}

/** Several nodes behind one URL, of which some lag, with occasional reorganisations. */
export const evmRealism = (
  node: EvmNode,
  { preset: activePreset }: Pick<FailureInjector, 'preset'>,
): Realism => {
  const history = headHistory(blocksBehindMax)
  let reorganising = false

  const drawHead = async ({ setting, random, counts }: ActivePreset) => {
    history.record(Number(await node.rpc().call('eth_blockNumber')), Date.now())
    if (random() >= setting.lagRate) return undefined
    const head = history.laggedHead(Date.now(), setting.lagMs)
    if (head !== undefined) counts.lagging = (counts.lagging ?? 0) + 1
    return head
  }

  const sendAtHead = async (head: number, body: string, sendUpstream: (body: string) => Promise<string>) => {
    const isBatch = body.trimStart().startsWith('[')
    const rewritten = (callsOf(body) ?? []).map((call) => viewAtHead(call, head))
    const sent = rewritten.map(({ call }) => call)
    const replies = JSON.parse(await sendUpstream(JSON.stringify(isBatch ? sent : sent[0]))) as
      | RpcReply
      | RpcReply[]
    const byId = new Map(rewritten.map(({ call, reply }) => [call.id, reply]))
    const shown = (Array.isArray(replies) ? replies : [replies]).map(
      (reply) => byId.get(reply.id)?.(reply) ?? reply,
    )
    return JSON.stringify(isBatch ? shown : shown[0])
  }

  const scheduleReorg = (preset: ActivePreset) => {
    const { setting, random, counts } = preset
    if (random() >= setting.reorgRate || reorganising) return
    reorganising = true
    const depth = random() < 0.25 ? 2 : 1
    const vanishedMs = Math.round((0.2 + 0.8 * random()) * setting.vanishedMsMax)
    const run = async () => {
      // The preset may have been replaced since this was scheduled; then remove no block.
      if (activePreset() !== preset) return
      const taken = await node.reorganise(depth, vanishedMs)
      if (taken > 0) counts.reorganised = (counts.reorganised ?? 0) + 1
    }
    // A stopped node has no block to reorganise.
    const end = () => {
      reorganising = false
    }
    setTimeout(() => void run().then(end, end), Math.round(random() * reorgAfterMsMax)).unref()
  }

  return {
    answer: async ({ preset, body }, sendUpstream) => {
      const text = body.toString()
      const calls = callsOf(text)
      if (!calls) return sendUpstream(text)
      const head = await drawHead(preset)
      const reply = await (head === undefined ? sendUpstream(text) : sendAtHead(head, text, sendUpstream))
      if (calls.some(({ method }) => method === 'eth_sendRawTransaction')) {
        history.record(Number(await node.rpc().call('eth_blockNumber')), Date.now())
        scheduleReorg(preset)
      }
      return reply
    },
  }
}
