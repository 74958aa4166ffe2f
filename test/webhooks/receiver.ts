/** A server of a user, which receives webhooks and answers as the test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { deadlineMs, eventually } from '../harness/gateway.ts'

export type Envelope = {
  id: string
  type: string
  task_id: string | null
  data: Record<string, unknown>
}
export type Received = { path: string; headers: IncomingHttpHeaders; body: string; event: Envelope }
/** A status, or a function that answers by itself; undefined keeps the request open. */
type Reply = number | ((response: ServerResponse) => void)

export async function openReceiver() {
  const received: Received[] = []
  let reply: (message: Received) => Reply | undefined = () => 200
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const message = {
        path: request.url ?? '',
        headers: request.headers,
        body,
        event: JSON.parse(body) as Envelope,
      }
      received.push(message)
      const answer = reply(message)
      if (typeof answer === 'number') response.writeHead(answer).end('noted')
      else answer?.(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    received,
    url: (path = '/hook') => `${origin}${path}`,
    answer(next: (message: Received) => Reply | undefined) {
      reply = next
    },
    at: (path: string) => received.filter((each) => each.path === path),
    until: (count: number, path?: string, msMax = deadlineMs): Promise<Received[]> =>
      eventually(
        async () => {
          const messages = path === undefined ? received : received.filter((each) => each.path === path)
          return messages.length >= count ? messages : undefined
        },
        `${count} messages`,
        msMax,
      ),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
export type Receiver = Awaited<ReturnType<typeof openReceiver>>

/** By the library that receivers use; throws where the signature is not right. */
export const verify = (secret: string, { body, headers }: Received): unknown =>
  new Webhook(secret).verify(body, headers as Record<string, string>)

export const idsOf = (messages: readonly Received[]): string[] => messages.map(({ event }) => event.id)
