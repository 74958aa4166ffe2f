/** A service that delivers messages, as `EMAIL_URL` names one: it keeps what it has accepted, and fails on demand. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventually } from '../harness/gateway.ts'

export type Delivered = { key: string; to: string; subject: string; text: string; status: number }
/** A status, or `hold`: no answer at all. */
type Answer = number | 'hold'

export async function openEmailService() {
  const received: Delivered[] = []
  const held: ServerResponse[] = []
  let answerOf: (message: { subject: string }) => Answer = () => 202
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const message = JSON.parse(Buffer.concat(chunks).toString()) as Omit<Delivered, 'key' | 'status'>
    const answer = answerOf(message)
    const status = answer === 'hold' ? 0 : answer
    received.push({ ...message, key: String(request.headers['idempotency-key']), status })
    if (answer === 'hold') held.push(response)
    else response.writeHead(answer).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const to = (email: string) => received.filter((each) => each.to === email)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`,
    received,
    answer(next: typeof answerOf) {
      answerOf = next
    },
    to,
    codeFor(email: string): string {
      const codes = to(email).flatMap(({ subject }) => /^(\d{8}) is your/.exec(subject)?.[1] ?? [])
      const code = codes.at(-1)
      if (!code) throw new Error(`no code for ${email}`)
      return code
    },
    /** The messages with this subject, once there are as many. */
    until: (email: string, subject: RegExp, count = 1): Promise<Delivered[]> =>
      eventually(async () => {
        const found = to(email).filter((each) => subject.test(each.subject))
        return found.length >= count ? found : undefined
      }, `${count} messages ${subject} to ${email}`),
    async [Symbol.asyncDispose]() {
      for (const response of held) response.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
