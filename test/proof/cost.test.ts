/** The cost of a request: any request to any route costs little and is answered quickly. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Agent, bearer, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { type HostileRequest, hostileRequests } from './support/hostile-requests.ts'
import { createHttpClient, type HttpClient, type HttpReply } from './support/http-client.ts'
import { type Document, type OperationCase, operationCases } from './support/openapi-requests.ts'
import { isProcessorTimeKnown, threadCpuMs } from './support/processor-time.ts'
import { isNightly, proofSeed } from './support/seed.ts'
import { unlimitedRates } from './support/unlimited.ts'

const perRoute = isNightly ? 600 : 200
const batch = 10
const cpuMsMax = 50
const answerBytesMax = 16 * 1024
const attemptsMax = 6
const seed = proofSeed('cost')

/** Documents: their content is the same for all callers, and is requested once. */
const documents = new Set(['GET /capabilities'])

let gateway: Awaited<ReturnType<typeof freshGateway>>
let client: HttpClient
/** This user has nothing, so that its reads are short; the other user owns what requests create. */
let reader: Agent
let writer: Agent
let cases: OperationCase[]
before(async () => {
  gateway = await freshGateway({ ...unlimitedRates, TRUST_PROXY: '127.0.0.1', STREAMS_PER_USER: '1000' })
  client = createHttpClient(gateway.url, { sockets: 4, msMax: 60_000 })
  ;[reader, writer] = [await newAgent(gateway.url), await newAgent(gateway.url)]
  cases = operationCases((await http<Document>(`${gateway.url}/openapi.json`)).body)
})
after(async () => {
  client[Symbol.dispose]()
  await gateway[Symbol.asyncDispose]()
})

function send({ request }: HostileRequest): Promise<HttpReply> {
  const agent = request.method === 'GET' ? reader : writer
  return client.send({ ...request, headers: { ...bearer(agent), ...request.headers } })
}

function assertAnswer(
  { name, request }: HostileRequest,
  { status, text }: HttpReply,
  found: OperationCase,
): void {
  const message = `PROOF_SEED=${seed} ${name} -> ${status} ${text.slice(0, 300)}`
  assert.ok(status < 500, message)
  if (documents.has(`${request.method} ${found.path}`) && status === 200) return
  assert.ok(Buffer.byteLength(text) < answerBytesMax, `${Buffer.byteLength(text)} bytes: ${message}`)
}

async function costOf(hostiles: readonly HostileRequest[], found: OperationCase): Promise<number> {
  const before = threadCpuMs(gateway)
  await Promise.all(hostiles.map(async (hostile) => assertAnswer(hostile, await send(hostile), found)))
  return threadCpuMs(gateway) - before
}

/** Measured alone and again: background work, garbage collection and first compilation are not part of the request. */
async function assertCheap(hostile: HostileRequest, found: OperationCase): Promise<void> {
  let cpuMsMin = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < attemptsMax && cpuMsMin >= cpuMsMax; attempt++)
    cpuMsMin = Math.min(cpuMsMin, await costOf([hostile], found))
  assert.ok(
    cpuMsMin < cpuMsMax,
    `PROOF_SEED=${seed} ${hostile.name}: ${cpuMsMin.toFixed(1)} ms of processor time`,
  )
}

test('no request costs 50 ms of processor time or is answered with 16 KiB, whatever its content', {
  skip: !isProcessorTimeKnown && 'the processor time of one thread is read from /proc',
}, async () => {
  let sent = 0
  let dearest = { name: '', ms: 0 }
  for (const found of cases) {
    const hostiles = hostileRequests(found, perRoute, seed)
    assert.ok(hostiles.length >= Math.min(perRoute, 100), `${found.name}: ${hostiles.length}`)
    for (let at = 0; at < hostiles.length; at += batch) {
      const together = hostiles.slice(at, at + batch)
      const ms = await costOf(together, found)
      sent += together.length
      if (ms / together.length > dearest.ms) dearest = { name: together[0]!.name, ms: ms / together.length }
      if (ms >= cpuMsMax) for (const hostile of together) await assertCheap(hostile, found)
    }
  }
  console.log(
    `cost: ${sent} requests to ${cases.length} routes; the slowest ${batch} cost ${dearest.ms.toFixed(1)} ms each: ${dearest.name}`,
  )
})
