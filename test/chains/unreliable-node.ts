/** A proxy before the real node that fails as public providers do. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Call = { jsonrpc: string; id: unknown; method: string; params: unknown[] }
type Reply = { jsonrpc: string; id: unknown; result?: unknown; error?: { code: number; message: string } }
type Receipt = { blockNumber: string; blockHash: string; transactionHash: string } | null
type Log = { blockNumber: string }

export type NodeFailures = {
  /**
   * Probability that a request is answered by a sibling that lags by so many blocks. `splits`: each call of a request is
   * answered by another one. `onlySimulations`: the siblings that answer anything else are current.
   */
  lag?: { chance: number; blocks: number; splits?: boolean; onlySimulations?: boolean }
  /** Probability of an HTML page, a 429 or a broken connection instead of an answer. */
  broken?: number
  /** The answer to raw transactions that the real node accepted. */
  sendError?: { code: number; message: string }
  /** Raw transactions are acknowledged and withheld. */
  withholdsSends?: boolean
  /** Receipts of withheld transactions, in a block that is not on the chain. */
  fakesReceipts?: boolean
  /** A search for logs over more blocks is rejected. */
  logBlocksMax?: number
  /** A request of more calls is rejected. */
  batchMax?: number
  /** Of the calls of long requests each one with this number is refused by a limit on requests. */
  limitsEach?: number
  /** Gas is estimated without the override of the state. */
  estimatesPlainly?: boolean
}

const latestAt: Record<string, number> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBlockByNumber: 0,
  eth_getTransactionCount: 1,
  eth_getCode: 1,
  eth_getBalance: 1,
}

/** Only simulations override the state. */
const isSimulation = ({ method, params }: Call): boolean =>
  (method === 'eth_call' || method === 'eth_estimateGas') && params.length > 2

const withoutOverride = (call: Call): Call =>
  call.method === 'eth_estimateGas' ? { ...call, params: call.params.slice(0, 2) } : call

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

export async function unreliableNode(random: () => number) {
  let target = ''
  let failures: NodeFailures = {}
  let asked = 0
  const withheld: { raw: string; hash: string }[] = []
  const counts = { lagged: 0, broken: 0, invented: 0, refusedSearches: 0, refusedBatches: 0, limited: 0 }

  const forward = async (calls: Call[]): Promise<Reply[]> => {
    const reply = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(calls),
    })
    const body = (await reply.json()) as Reply[] | Reply
    return Array.isArray(body) ? body : [body]
  }
  const ask = async (method: string, params: unknown[]): Promise<unknown> =>
    (await forward([{ jsonrpc: '2.0', id: 1, method, params }]))[0]!.result

  const behind = (calls: Call[], head: bigint): Call[] =>
    calls.map((call) => {
      const at = latestAt[call.method]
      if (at === undefined || call.params[at] !== 'latest') return call
      return { ...call, params: call.params.with(at, `0x${head.toString(16)}`) }
    })

  /** A lagging sibling has neither newer receipts nor newer blocks, and finds no logs in them without an error. */
  const hideNewer = (calls: Call[], replies: Reply[], head: bigint): Reply[] =>
    replies.map((reply) => {
      const call = calls.find(({ id }) => id === reply.id)
      if (call?.method === 'eth_getLogs')
        return {
          ...reply,
          result: (reply.result as Log[]).filter(({ blockNumber }) => BigInt(blockNumber) <= head),
        }
      const receipt = reply.result as Receipt
      const isNewer =
        call?.method === 'eth_getTransactionReceipt' && receipt && BigInt(receipt.blockNumber) > head
      return isNewer ? { ...reply, result: null } : reply
    })

  const fakeReceipt = async (hash: unknown): Promise<unknown> => {
    if (!withheld.some((each) => each.hash === hash)) return null
    counts.invented += 1
    const number = await ask('eth_blockNumber', [])
    const zeros = '0'.repeat(64)
    return {
      transactionHash: hash,
      blockNumber: `0x${(BigInt(number as string) - 3n).toString(16)}`,
      blockHash: `0x${'ab'.repeat(32)}`,
      status: '0x1',
      gasUsed: '0x5208',
      effectiveGasPrice: '0x1',
      from: `0x${zeros.slice(0, 40)}`,
      logs: [],
    }
  }

  const refuseLongSearches = (calls: Call[], replies: Reply[], blocksMax: number): Reply[] =>
    replies.map((reply) => {
      const call = calls.find(({ id, method }) => id === reply.id && method === 'eth_getLogs')
      const { fromBlock, toBlock } = (call?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string }
      if (!fromBlock || !toBlock || Number(toBlock) - Number(fromBlock) < blocksMax) return reply
      counts.refusedSearches += 1
      const message = `You can make eth_getLogs requests with up to a ${blocksMax} block range.`
      return { jsonrpc: '2.0', id: reply.id, error: { code: -32600, message } }
    })

  const withhold = async (call: Call): Promise<Reply> => {
    const raw = String(call.params[0])
    const { keccak256 } = await import('viem')
    const hash = keccak256(raw as `0x${string}`)
    withheld.push({ raw, hash })
    return { jsonrpc: '2.0', id: call.id, result: hash }
  }

  const limitRequests = (replies: Reply[], each: number): Reply[] =>
    replies.map((reply) => {
      asked += 1
      if (replies.length === 1 || asked % each > 0) return reply
      counts.limited += 1
      const message = 'Your app has exceeded its compute units per second capacity'
      return { jsonrpc: '2.0', id: reply.id, error: { code: 429, message } }
    })

  const answerInTime = async (calls: Call[]): Promise<Reply[]> => {
    const { limitsEach } = failures
    const replies = await answer(calls)
    return limitsEach ? limitRequests(replies, limitsEach) : replies
  }

  const answer = async (calls: Call[]): Promise<Reply[]> => {
    const { lag, sendError, withholdsSends, fakesReceipts, logBlocksMax, estimatesPlainly } = failures
    const isSending = calls.some(({ method }) => method === 'eth_sendRawTransaction')
    if (isSending && withholdsSends) return Promise.all(calls.map(withhold))
    if (isSending && sendError) {
      await forward(calls)
      return calls.map(({ id }) => ({ jsonrpc: '2.0', id, error: sendError }))
    }
    if (lag?.splits && calls.length > 1)
      return (await Promise.all(calls.map((call) => answer([call])))).flat()
    const mayLag = !isSending && (!lag?.onlySimulations || calls.every(isSimulation))
    if (lag && mayLag && random() < lag.chance) {
      counts.lagged += 1
      const head = BigInt((await ask('eth_blockNumber', [])) as string) - BigInt(lag.blocks)
      return hideNewer(calls, await forward(behind(calls, head)), head)
    }
    const answered = await forward(estimatesPlainly ? calls.map(withoutOverride) : calls)
    const replies = logBlocksMax ? refuseLongSearches(calls, answered, logBlocksMax) : answered
    if (!fakesReceipts) return replies
    return Promise.all(
      replies.map(async (reply) => {
        const call = calls.find(({ id }) => id === reply.id)
        if (call?.method !== 'eth_getTransactionReceipt' || reply.result !== null) return reply
        return { ...reply, result: await fakeReceipt(call.params[0]) }
      }),
    )
  }

  const breakDown = (response: ServerResponse): void => {
    counts.broken += 1
    const kind = Math.floor(random() * 4)
    if (kind === 3) return void response.destroy()
    const status = [200, 403, 429][kind]!
    response.writeHead(status, { 'content-type': 'text/html' }).end('<html><h1>Just a moment</h1></html>')
  }

  const server = createServer((request, response) => {
    void (async () => {
      const parsed = JSON.parse(await bodyOf(request)) as Call | Call[]
      if (random() < (failures.broken ?? 0)) return breakDown(response)
      const { batchMax = Number.POSITIVE_INFINITY } = failures
      response.setHeader('content-type', 'application/json')
      if (Array.isArray(parsed) && parsed.length > batchMax) {
        counts.refusedBatches += 1
        const error = { code: -32014, message: `maximum ${batchMax} calls in 1 batch` }
        return response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }))
      }
      const replies = await answerInTime(Array.isArray(parsed) ? parsed : [parsed])
      response.end(JSON.stringify(Array.isArray(parsed) ? replies : replies[0]))
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    withheld,
    before: (url: string) => {
      target = url
    },
    set: (what: NodeFailures) => {
      failures = what
    },
    /** Sends the withheld transactions. */
    release: async () => {
      for (const { raw } of withheld.splice(0)) await ask('eth_sendRawTransaction', [raw])
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
