import { open } from 'node:fs/promises'
import { request } from 'node:http'
import type { Anvil } from './anvil.ts'
import { headOf } from './chain-time.ts'

const timeoutMs = 60_000
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_dumpState', params: [] })
const resultPrefix = Buffer.from('"result":"0x')
const quote = 0x22

/** Extracts the hex text of a JSON-RPC answer as it arrives, and returns its bytes. */
export const hexResultParser = () => {
  let head: Buffer | undefined = Buffer.alloc(0)
  let rest = ''
  let ended = false
  return {
    parse: (chunk: Buffer): Buffer => {
      let part = chunk
      if (head) {
        head = Buffer.concat([head, chunk])
        const at = head.indexOf(resultPrefix)
        if (at < 0) return Buffer.alloc(0)
        part = head.subarray(at + resultPrefix.length)
        head = undefined
      }
      if (ended) return Buffer.alloc(0)
      const end = part.indexOf(quote)
      if (end >= 0) ended = true
      const text = rest + part.subarray(0, end < 0 ? part.length : end).toString('latin1')
      rest = text.length % 2 === 0 ? '' : text.slice(-1)
      return Buffer.from(text.slice(0, text.length - rest.length), 'hex')
    },
    isComplete: () => ended && rest === '',
    /** The message in place of a result. */
    errorText: () => head?.toString().slice(0, 500) ?? 'the answer is incomplete',
  }
}

/**
 * Writes the state of a node into a file, gzipped as the node sends it. The state is streamed and not parsed, so that
 * the proxies in this process keep answering.
 */
export const dumpState = async (
  { host, port }: { host: string; port: number },
  path: string,
): Promise<void> => {
  const file = await open(path, 'w', 0o600)
  try {
    const parser = hexResultParser()
    await new Promise<void>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length }
      const outgoing = request(
        { port, host, method: 'POST', headers, timeout: timeoutMs },
        async (answer) => {
          try {
            for await (const chunk of answer as AsyncIterable<Buffer>) {
              const bytes = parser.parse(chunk)
              if (bytes.length > 0) await file.write(bytes)
            }
            if (parser.isComplete()) resolve()
            else reject(new Error(`The node did not give its state: ${parser.errorText()}`))
          } catch (error) {
            reject(error)
          }
        },
      )
      outgoing.once('timeout', () => outgoing.destroy(new Error('The node did not give its state in time.')))
      outgoing.once('error', reject)
      outgoing.end(body)
    })
  } finally {
    await file.close()
  }
}

const triesMax = 3

/**
 * Writes a consistent state. A block that is mined meanwhile has effects in it and no receipt: then the state is
 * written again.
 */
export const dumpConsistentState = async (
  { rpc, host, port }: Pick<Anvil, 'rpc' | 'host' | 'port'>,
  path: string,
) => {
  for (let tries = 1; ; tries++) {
    const before = await headOf(rpc)
    await dumpState({ host, port }, path)
    if ((await headOf(rpc)).hash === before.hash) return
    if (tries === triesMax) throw new Error('Blocks were mined while the state was written.')
  }
}
