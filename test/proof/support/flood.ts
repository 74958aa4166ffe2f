/** Attackers in a thread of their own, so that what they send does not delay the clock of the honest user. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { createHttpClient, type HttpRequest } from './http-client.ts'

export type Attacker = {
  /** `{n}` in its body is a smaller number each time. */
  request: HttpRequest
  /** So many are sent at once, each again as soon as it was answered, and as `everyMs` is over. */
  inFlight: number
  everyMs?: number
  /** Streams that are opened and never read. */
  unread?: readonly HttpRequest[]
}
type Flood = { url: string; attackers: readonly Attacker[] }
type NumberedFlood = Flood & { cents: number }
/** Answers by their status. */
export type Statuses = Record<string, number>

/** Each flood goes on below the numbers of the one before. */
const firstCents = 8_000_000
const centsOfFlood = 50_000
let floods = 0

/** `opened`: every stream was answered or refused. */
function attack({ url, attackers, cents: first }: NumberedFlood) {
  const statuses: Statuses = {}
  let isOver = false
  let cents = first
  const opened: Promise<void>[] = []
  const { hostname, port } = new URL(url)
  for (const { request: repeated, inFlight, everyMs = 0, unread = [] } of attackers) {
    for (const { method, path, headers = {}, body } of unread)
      opened.push(
        new Promise((resolve) => {
          request({ hostname, port, method, path, headers, agent: false })
            .on('response', (answer: IncomingMessage) => {
              answer.pause()
              resolve()
            })
            .on('error', () => resolve())
            .end(body)
        }),
      )
    const client = createHttpClient(url, { sockets: inFlight, msMax: 100_000 })
    const loop = async () => {
      while (!isOver) {
        const { body, ...rest } = repeated
        cents -= 1
        const sent =
          body === undefined ? rest : { ...rest, body: String(body).replace('{n}', String(cents / 100)) }
        const pause = delay(everyMs)
        const status = await client.send(sent).then(
          (answer) => String(answer.status),
          () => 'cut',
        )
        statuses[status] = (statuses[status] ?? 0) + 1
        await pause
      }
    }
    for (let at = 0; at < inFlight; at++) void loop()
  }
  const end = (): Statuses => {
    isOver = true
    return statuses
  }
  return { opened: Promise.all(opened), end }
}

if (parentPort && workerData) {
  const { opened, end } = attack(workerData as NumberedFlood)
  parentPort.once('message', () => parentPort!.postMessage(end()))
  void opened.then(() => parentPort!.postMessage('opened'))
}

/** Runs until it is ended; the answer is what the attackers were answered. */
export async function startFlood(flood: Flood): Promise<{ end(): Promise<Statuses> }> {
  floods += 1
  const cents = firstCents - floods * centsOfFlood
  const worker = new Worker(new URL(import.meta.url), { workerData: { ...flood, cents } })
  await once(worker, 'message')
  return {
    async end() {
      worker.postMessage('end')
      const [statuses] = (await once(worker, 'message')) as [Statuses]
      await worker.terminate()
      return statuses
    },
  }
}
