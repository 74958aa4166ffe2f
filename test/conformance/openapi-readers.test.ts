/** Others judge the document: redocly by its rules, and prism by each answer of a journey through its proxy. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { foreignPackages } from '../harness/foreign-packages.ts'
import { eventually, freshGateway, type Gateway, newAgent } from '../harness/gateway.ts'

const run = promisify(execFile)
const rules = fileURLToPath(new URL('./redocly', import.meta.url))
const redocly = fileURLToPath(new URL('../../node_modules/@redocly/cli/bin/cli.js', import.meta.url))

let gateway: Gateway
let folder: string
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portico-openapi-'))
  gateway = await freshGateway()
  writeFileSync(join(folder, 'openapi.json'), await (await fetch(`${gateway.url}/openapi.json`)).text())
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** Rejects with the findings. */
const lint = () => run(process.execPath, [redocly, 'lint', 'openapi.json'], { cwd: folder })

test('redocly finds nothing by its recommended rules but the paths that the interface names', async () => {
  cpSync(rules, folder, { recursive: true })
  await lint()
  rmSync(join(folder, '.redocly.lint-ignore.yaml'))
  await assert.rejects(lint(), ({ stdout, stderr }: { stdout: string; stderr: string }) => {
    assert.match(stdout + stderr, /1 error and 2 warnings|3 errors/)
    return true
  })
})

type Parameter = { required?: boolean }
type Method = {
  security?: object[]
  parameters?: Parameter[]
  responses: Record<string, { content?: object }>
}
type Document = { paths: Record<string, Record<string, Method>> }
type Violation = { location: string[]; message: string }
type Json = Record<string, unknown>

/** Nobody else takes the port in between, as far as one can know. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** The paths of reads that need no parameter. */
const plainReads = ({ paths }: Document): string[] =>
  Object.entries(paths).flatMap(([path, { get }]) => {
    const needsInput = path.includes('{') || get?.parameters?.some(({ required }) => required)
    const isStream = Object.keys(get?.responses['200']?.content ?? {}).includes('text/event-stream')
    return get && !needsInput && !isStream ? [path] : []
  })

test('prism finds no answer that differs from the document, over reads, money, trades and refusals', async (context) => {
  const packages = await foreignPackages('openapi')
  if (typeof packages === 'string') return context.skip(packages)
  const port = await freePort()
  const proxy = spawn(
    process.execPath,
    [
      packages.program('@stoplight/prism-cli'),
      'proxy',
      'openapi.json',
      gateway.url,
      '--port',
      String(port),
      '--verboseLevel',
      'warn',
    ],
    { cwd: folder, stdio: 'ignore' },
  )
  try {
    const url = `http://127.0.0.1:${port}`
    await eventually(
      async () => (await fetch(`${url}/health`).catch(() => undefined))?.status === 200 || undefined,
      'prism listens',
    )
    const { token } = await newAgent(gateway.url)
    const found: string[] = []
    let calls = 0
    const call = async (route: string, expected: number, body?: object): Promise<Json> => {
      const [method = '', path = ''] = route.split(' ')
      const reply = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await reply.text()
      assert.equal(reply.status, expected, `${route}: ${text}`)
      calls++
      const violations = JSON.parse(reply.headers.get('sl-violations') ?? '[]') as Violation[]
      // A request that the gateway refuses is meant to differ from the document.
      for (const { location, message } of violations)
        if (location[0] === 'response' || expected === 200)
          found.push(`${route}: ${location.join('.')} ${message}`)
      return JSON.parse(text) as Json
    }
    const task = async (route: string, body: object): Promise<Json> => {
      const answer = await call(`${route}?wait=true`, 200, body)
      assert.equal(answer.status, 'completed', `${route}: ${JSON.stringify(answer)}`)
      return call(`GET /v1/tasks/${String(answer.task_id)}`, 200)
    }
    await eventually(async () => {
      const { items } = (await call('GET /v1/tasks?kind=faucet_grant', 200)) as { items: Json[] }
      return items[0]?.status === 'completed' || undefined
    }, 'the faucet grant')
    const document = JSON.parse(await (await fetch(`${gateway.url}/openapi.json`)).text()) as Document
    const reads = plainReads(document)
    assert.ok(reads.length > 35, `${reads.length} reads`)
    const readAll = async () => {
      for (const path of reads) await call(`GET ${path}`, 200)
    }
    await readAll()

    const deposit = (await task('POST /v1/earn/deposit', { amount_usdc: '5' })) as { result: Json }
    await task('POST /v1/earn/withdraw', { position_id: deposit.result.position_id, amount_usdc: '2' })
    const swap = { chain_id_in: '8453', token_in: 'USDC', token_out: 'WETH' }
    await call('POST /v1/swap', 200, { ...swap, amount_usd: '20', dryrun: true })
    await task('POST /v1/swap', { ...swap, amount_usd: '20' })
    await task('POST /v1/perp/setup', {})
    await task('POST /v1/perp/fund', { amount_usd: '300' })
    await task('POST /v1/perp/open', { asset: 'BTC', side: 'long', size: '0.001' })
    await call('GET /v1/markets/BTC/candles', 200)
    await call('GET /v1/markets/BTC/funding', 200)
    await call('POST /v1/webhooks', 200, { url: 'http://127.0.0.1:9/events', types: ['task.completed'] })
    await readAll()
    await task('POST /v1/perp/close', { asset: 'BTC' })

    await call('POST /v1/earn/deposit', 422, { amount_usdc: '-5' })
    await call('POST /v1/earn/deposit', 409, { amount_usdc: '20000' })
    await call('POST /v1/earn/deposit', 403, { amount_usdc: '1000000' })
    await call('GET /v1/tasks/019a0000-0000-7000-8000-000000000000', 404)
    await call('POST /v1/auth/register', 422, {})
    assert.ok(calls > 90, `${calls} calls`)
    assert.deepEqual([...new Set(found)], [])
  } finally {
    proxy.kill()
  }
})
