import { Agent, request } from 'node:http'

type Request = { method: string; params?: readonly unknown[] }
type Reply = { id: number; result?: unknown; error?: { message: string; data?: unknown } }

export type Rpc = {
  call: (method: string, params?: readonly unknown[]) => Promise<unknown>
  /** One round trip; answers in the order asked, and the first failure rejects all. */
  batch: (requests: readonly Request[]) => Promise<unknown[]>
  close: () => void
}

const timeoutMs = 20_000

/** A JSON-RPC client for the world's own use, always beside the proxies, so no fault reaches it. */
export const rpcAt = (port: number, host = '127.0.0.1'): Rpc => {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })

  const send = (body: string): Promise<Reply | Reply[]> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const options = { port, host, method: 'POST', agent, headers, timeout: timeoutMs }
      const outgoing = request(options, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.once('error', reject)
        answer.once('end', () => {
          try {
            resolve(JSON.parse(Buffer.concat(chunks).toString()) as Reply | Reply[])
          } catch (cause) {
            reject(new Error('The node did not answer with JSON.', { cause }))
          }
        })
      })
      outgoing.once('timeout', () => outgoing.destroy(new Error('The node did not answer in time.')))
      outgoing.once('error', reject)
      outgoing.end(body)
    })

  const batch = async (requests: readonly Request[]) => {
    if (requests.length === 0) return []
    const body = requests.map(({ method, params = [] }, id) => ({ jsonrpc: '2.0', id, method, params }))
    const answer = await send(JSON.stringify(body))
    if (!Array.isArray(answer)) throw new Error(answer.error?.message ?? 'The node did not answer the batch.')
    const byId = new Map(answer.map((reply) => [reply.id, reply]))
    return requests.map(({ method }, id) => {
      const reply = byId.get(id)
      if (!reply || reply.error) throw new Error(`${method}: ${reply?.error?.message ?? 'no answer'}`)
      return reply.result
    })
  }

  const call = async (method: string, params: readonly unknown[] = []) =>
    (await batch([{ method, params }]))[0]
  return { call, batch, close: () => agent.destroy() }
}
