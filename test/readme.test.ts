/** Runs the README and docs/tour.md as they are printed, block by block, on a gateway that the test starts. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { variables } from '#config.ts'
import { eventTypes } from '#features/notifications/event-types.ts'
import { childEnvironment } from './harness/child-environment.ts'
import { assertAllConserved, testFunding } from './harness/conservation.ts'
import { dataFolder, eventually } from './harness/gateway.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8')
const readme = read('README.md')
const longTour = read('docs/tour.md')

type Block = { command: string; promised?: string }

const fenced = /^```(bash|js)\n([\s\S]*?)^```\n(?:```text\n([\s\S]*?)^```\n)?/gm

/** A program in JavaScript becomes a command that runs it. */
const commandOf = (language: string, code: string): string =>
  language === 'js' ? `node --input-type=module - <<'END OF PROGRAM'\n${code}END OF PROGRAM\n` : code

const blocksOf = (text: string): Block[] =>
  [...text.matchAll(fenced)].map(([, language = '', code = '', promised]) => ({
    command: commandOf(language, code),
    ...(promised !== undefined && { promised }),
  }))

/** Patterns of values that differ from run to run. */
const volatile: readonly (readonly [RegExp, string])[] = [
  [/\r/g, ''],
  [/127\.0\.0\.1:\d+/g, '<host>'],
  [/agt_[0-9A-HJKMNP-TV-Z]{26}/g, '<agent>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>'],
  [/0x[0-9a-f]{64}/g, '<hash>'],
  [/0x[0-9a-fA-F]{40}/g, '<address>'],
  [/(?<=solana )[1-9A-HJ-NP-Za-km-z]{32,44}/g, '<address>'],
  [/\b(249|250)\d{18}\b/g, '<shares>'],
]
const shape = (text: string): string =>
  volatile.reduce((shaped, [pattern, name]) => shaped.replace(pattern, name), text.trim())

/** A line of three dots matches any lines, an ellipsis the rest of a line. */
const promise = (text: string): RegExp => {
  const parts = shape(text)
    .split(/^\.\.\.$/m)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*'))
  return new RegExp(`^${parts.join('[\\s\\S]*?')}$`)
}

const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** False where the process has ended already. */
const signalled = (pid: number): boolean => {
  try {
    return process.kill(pid, 'SIGTERM')
  } catch {
    return false
  }
}

/** Ends all processes of the script, background ones included. */
const endGroup = (pid: number | undefined) => {
  try {
    if (pid) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

const run = (command: string, args: string[], env: Record<string, string>) => {
  const child = spawn(command, args, {
    cwd: root,
    env: { ...childEnvironment(), ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let complaints = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk
  })
  child.stderr.on('data', (chunk: Buffer) => {
    complaints += chunk
  })
  return {
    pid: child.pid,
    code: () => child.exitCode ?? undefined,
    output: () => output,
    all: () => output + complaints,
  }
}

describe('the README and the tour', () => {
  const folder = dataFolder()
  const blocks = [...blocksOf(readme), ...blocksOf(longTour)]
  let shown: string[] = []
  let env: Record<string, string> = {}
  let gateway: ReturnType<typeof run> | undefined
  let script: ReturnType<typeof run> | undefined
  let conserved: Promise<void> | undefined
  const user = `${folder.path}/user`
  const audited = `${folder.path}/audited`
  const waitsForAudit = `echo "$TOKEN $EVM" > ${user}\nuntil [ -e ${audited} ]; do sleep 0.1; done\n`

  /** While the tour waits, before the block that ends the gateway. */
  const audit = async (url: string, control: string): Promise<void> => {
    const line = () => (existsSync(user) ? readFileSync(user, 'utf8') : '')
    await eventually(async () => (line().endsWith('\n') ? true : undefined), 'the user', 150_000)
    const [token = '', evm = ''] = line().trim().split(' ')
    const why = 'the tour asks the faucet for more'
    testFunding.add({ evm }, { asset: 'usdc:8453', units: 500_000_000n, why })
    await assertAllConserved({ url, control }, [async () => ({ token, evm })]).finally(() =>
      writeFileSync(audited, ''),
    )
  }

  before(async () => {
    const [port, worldPort] = [await freePort(), await freePort()]
    env = {
      PORT: String(port),
      WORLD_PORT: String(worldPort),
      DATA_DIR: folder.path,
      XDG_CONFIG_HOME: `${folder.path}/config`,
    }
    gateway = run('npm', ['start'], env)
    const { all } = gateway
    await eventually(
      async () => (/^portico ready /m.test(all()) ? true : undefined),
      'the gateway starts',
      60_000,
    ).catch((error: Error) => assert.fail(`${error.message}\n${all()}`))
    const text = blocks
      .map(
        ({ command }, at) =>
          `${at === blocks.length - 1 ? waitsForAudit : ''}echo && echo '<block ${at}>'\n${command}`,
      )
      .join('')
      .replaceAll('http://127.0.0.1:8080', `http://127.0.0.1:${port}`)
      .replaceAll('http://127.0.0.1:8090', `http://127.0.0.1:${worldPort}`)
      // Files that the tour writes belong to the test's own folder.
      .replace(/\b(?!console\b)(\w+)\.log\b/g, `${folder.path}/$1.log`)
    script = run('bash', ['-c', `set -euo pipefail\n${text}\necho && echo '<end>'`], env)
    conserved = audit(`http://127.0.0.1:${port}`, `http://127.0.0.1:${worldPort}`)
    conserved.catch(() => undefined)
    const { code, all: said } = script
    await eventually(async () => code(), 'the tour ends', 150_000).catch((error: Error) =>
      assert.fail(`${error.message}\n${said()}`),
    )
    shown = script.output().split(/^<(?:block \d+|end)>\n/m)
    assert.equal(code(), 0, said())
  })
  after(async () => {
    endGroup(script?.pid)
    // Stops the current gateway, because a killed one leaves its database server running.
    const mark = `${folder.path}/gateway.pid`
    if (existsSync(mark) && signalled(Number(readFileSync(mark, 'utf8').split(' ', 1)[0])))
      await eventually(async () => (existsSync(mark) ? undefined : true), 'the gateway stops', 15_000)
    endGroup(gateway?.pid)
    folder[Symbol.dispose]()
  })

  for (const [at, { command, promised }] of blocks.entries()) {
    if (promised === undefined) continue
    const title = command.trim().split('\n').at(-1)?.slice(0, 70)
    test(`block ${at + 1} shows the documented output: ${title}`, () => {
      assert.match(shape(shown[at + 1] ?? ''), promise(promised))
    })
  }

  test("the user of the tour has the faucet's grant, to the unit", async () => {
    assert.ok(conserved)
    await conserved
  })

  test('the gateway of the tour ends on request', async () => {
    const gone = () => (existsSync(`${folder.path}/gateway.pid`) ? undefined : true)
    assert.ok(await eventually(async () => gone(), 'the marker of the gateway is removed', 15_000))
  })
})

/** Read by tests and benches alone. */
const ofTheTests = new Set(['PROOF_SEED', 'GROWTH_TASKS'])
/** Pages of the HTTP server itself, which belong to no operation. */
const undocumented = new Set(['/metrics'])

describe('the form of the README', () => {
  test('a reader meets the first call soon, and at most 6 KB', () => {
    const lines = readme.split('\n')
    assert.ok(lines.findIndex((line) => line.startsWith('curl ')) < 25)
    assert.ok(Buffer.byteLength(readme) <= 6_000)
    const opening = lines.slice(0, 6).join('\n')
    assert.match(opening, /no real money/)
    assert.match(opening, /Nobody has audited/)
  })

  test('docs/events.md lists every type of event, and no other', () => {
    const listed = [...read('docs/events.md').matchAll(/^\| `([\w.]+)` \|/gm)].map(([, type]) => type)
    assert.deepEqual(listed.sort(), [...eventTypes].sort())
  })
})

describe('names in the documents', () => {
  const documents = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'AGENTS.md', 'SECURITY.md']
  const texts = [
    ...documents,
    'docs/operations.md',
    'docs/durability.md',
    'docs/tour.md',
    'docs/events.md',
  ].map((path) => [path, read(path)] as const)

  test('every folder of src has its line in the map of the source', () => {
    for (const entry of readdirSync(`${root}/src`, { withFileTypes: true }))
      if (entry.isDirectory())
        assert.match(read('ARCHITECTURE.md'), new RegExp(`^\\| \`src/${entry.name}\``, 'm'))
  })

  test('every setting, route, file and script exists', () => {
    type Document = { paths: Record<string, Record<string, unknown>> }
    const { paths } = JSON.parse(read('docs/openapi.json')) as Document
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    for (const [path, text] of texts) {
      for (const [, name = ''] of text.matchAll(/`([A-Z]{2,}(?:_[A-Z]+)+)(?:=[^`]*)?`/g))
        assert.ok(name in variables || ofTheTests.has(name), `${path} names the setting ${name}`)
      for (const [, method = '', route = ''] of text.matchAll(/`(GET|POST|PUT|DELETE) (\/[^`? ]*)/g))
        assert.ok(
          undocumented.has(route) || paths[route]?.[method.toLowerCase()],
          `${path} names the route ${method} ${route}`,
        )
      for (const [, file = ''] of text.matchAll(
        /[`(]((?:src|test|scripts|docs|bench|ops)\/[\w./-]+\.(?:ts|md|cjs|json|yml))[`)]/g,
      ))
        assert.ok(existsSync(`${root}/${file}`), `${path} names the file ${file}`)
      for (const [, script = ''] of text.matchAll(/`npm run (\w+)/g))
        assert.ok(script in scripts, `${path} names the script ${script}`)
    }
  })
})
