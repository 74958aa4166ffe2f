import { Agent, request } from 'node:http'

type Request = { method: string; params?: readonly unknown[] }
type Reply = { id: number; result?: unknown; error?: { message: string; data?: unknown } }

export type Rpc = {
  call: (method: string, params?: readonly unknown[]) => Promise<unknown>
  /** One round trip; answers in the order of the calls, and the first failure rejects all. */
  batch: (requests: readonly Request[]) => Promise<unknown[]>
  /** A raw body and its raw answer. */
  post: (body: string) => Promise<string>
  close: () => void
}

const timeoutMs = 20_000

/** A client over any transport to a node. */
export const rpcOver = (post: Rpc['post'], close: () => void): Rpc => {
  const batch = async (requests: readonly Request[]) => {
    if (requests.length === 0) return []
    const body = requests.map(({ method, params = [] }, id) => ({ jsonrpc: '2.0', id, method, params }))
    const text = await post(JSON.stringify(body))
    let answer: Reply | Reply[]
    try {
      answer = JSON.parse(text) as Reply | Reply[]
    } catch (cause) {
      throw new Error('The node did not answer with JSON.', { cause })
    }
    if (!Array.isArray(answer)) throw new Error(answer.error?.message ?? 'The node did not answer the batch.')
    const byId = new Map(answer.map((reply) => [reply.id, reply]))
    return requests.map(({ method }, id) => {
      const reply = byId.get(id)
      if (!reply || reply.error)
        throw new Error(`${method}: ${reply?.error?.message ?? 'no answer'}`, { cause: reply?.error })
      return reply.result
    })
  }

  const call = async (method: string, params: readonly unknown[] = []) =>
    (await batch([{ method, params }]))[0]
  return { call, batch, post, close }
}

/** A JSON-RPC client for the world's own use. It bypasses the proxies, so no injected failure applies to it. */
export const rpcAt = (port: number, host = '127.0.0.1'): Rpc => {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })

  const post = (body: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const options = { port, host, method: 'POST', agent, headers, timeout: timeoutMs }
      const outgoing = request(options, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.once('error', reject)
        answer.once('end', () => resolve(Buffer.concat(chunks).toString()))
      })
      outgoing.once('timeout', () => outgoing.destroy(new Error('The node did not answer in time.')))
      outgoing.once('error', reject)
      outgoing.end(body)
    })

  return rpcOver(post, () => agent.destroy())
}
