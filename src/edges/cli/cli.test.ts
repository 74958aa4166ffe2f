import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { runCli } from './cli.ts'
import { commands } from './commands.ts'
import { exitCodes } from './exit-codes.ts'
import { widthOf } from './table-text.ts'

async function portico(words: readonly string[], { width }: { width?: number } = {}) {
  let [out, err] = ['', '']
  const code = await runCli(words, {
    env: { XDG_CONFIG_HOME: '/nowhere' },
    home: '/nowhere',
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    isInteractive: false,
    ...(width !== undefined && { width }),
    openBrowser: () => {},
    signal: AbortSignal.timeout(30_000),
  })
  return { code, out, err }
}
const closed = 'http://127.0.0.1:1'

test('portico alone shows the first three steps', async () => {
  const { code, out, err } = await portico([])
  assert.deepEqual([code, err], [exitCodes.success, ''])
  assert.deepEqual(
    [...out.matchAll(/^ {2}(\d) {2}(portico [a-z]+)/gm)].map(([, at, command]) => `${at} ${command}`),
    ['1 portico up', '2 portico init', '3 portico earn'],
  )
})

test('--version is the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  assert.deepEqual(await portico(['--version']), { code: 0, out: `${version}\n`, err: '' })
})

test('help shows what the gateway takes where an option is left out, and nothing else as a default', async () => {
  const { out } = await portico(['perp', 'open', '--help'])
  assert.doesNotMatch(out, /preset/)
  assert.match(out, /--reduce-only \[true\|false\] +\(default false\)/)
  assert.match(out, /--is-buy \[true\|false\] +True is long; either this or `--side`\n/)
})

test('help names commands and flags, and fits the screen', async () => {
  for (const width of [60, 80, 120])
    for (const { group, verb } of commands) {
      const { out } = await portico([group, verb, '--help'], { width })
      assert.doesNotMatch(out, /wait=true|\/v1\//)
      // The line with the arguments is not broken.
      for (const line of out.split('\n').slice(1))
        assert.ok(widthOf(line) <= width || !line.trim().includes(' '), `${width}: ${line}`)
    }
})

test('options that every command has stand before the section, before the command and behind it', async () => {
  for (const words of [
    ['--base-url', 'foo', 'earn', 'positions'],
    ['earn', '--base-url', 'foo', 'positions'],
    ['earn', 'positions', '--base-url', 'foo'],
    ['--base-url', 'foo', 'status'],
    ['--base-url', 'foo', 'chat', 'hello'],
    ['watch', '--base-url', 'foo', 'tasks'],
    ['--base-url', 'foo', 'init'],
  ]) {
    const { code, err } = await portico(words)
    assert.equal(code, exitCodes.usage, words.join(' '))
    assert.equal(err, 'portico: --base-url is an address such as http://127.0.0.1:8080, not foo\n')
  }
})

test('a wrong command line ends with 2, and with one line of JSON where that is asked for', async () => {
  for (const words of [
    ['earn', 'nothing'],
    ['ern'],
    ['earn', 'deposit', '--amount', '5'],
    ['tasks', 'get'],
    ['earn', 'positions', '--retries', 'few'],
    ['watch', 'tasks', '--items', '-1'],
    ['watch', 'holdings', '--interval', 'x'],
    ['completion', 'csh'],
    ['chat'],
  ]) {
    const plain = await portico(words)
    assert.deepEqual([plain.code, plain.out], [exitCodes.usage, ''], words.join(' '))
    assert.match(plain.err, /^portico: .+\n$/)
    if (words[0] === 'completion') continue
    const { code, err } = await portico([...words, '--json'])
    assert.equal(code, exitCodes.usage, err)
    assert.equal((JSON.parse(err) as { code: string }).code, 'usage', words.join(' '))
  }
})

test('an unknown option is answered with those that may be meant', async () => {
  const { err } = await portico(['earn', 'deposit', '--amount', '5'])
  assert.equal(
    err,
    'portico: unknown option --amount; did you mean --amount-usdc? (portico earn deposit --help lists them)\n',
  )
})

test('a gateway that does not answer ends the command with 9 and a hint', async () => {
  const { code, err } = await portico(['chains', 'list', '--base-url', closed, '--retries', '0'])
  assert.equal(code, exitCodes.connection)
  assert.match(err, /^portico: connection_failed: .+\n {2}Is the gateway running\? portico up/)
})

test('completion knows the commands of people, the sections, their operations, options and choices', async () => {
  const complete = async (...words: string[]) =>
    (await portico(['complete', '--', ...words])).out.trim().split('\n')
  assert.deepEqual(await complete('hold'), ['holdings'])
  assert.deepEqual(await complete('ear'), ['earn'])
  assert.ok((await complete('chat', '')).includes('threads'))
  assert.deepEqual(await complete('perp', 'open', '--side', 'sh'), ['short'])
  assert.deepEqual(await complete('watch', 'tasks', '--aft'), ['--after'])
  assert.deepEqual(await complete('--base-url', closed, 'earn', 'dep'), ['deposit'])
  assert.deepEqual(await complete('completion', ''), ['bash', 'zsh', 'fish'])
})
