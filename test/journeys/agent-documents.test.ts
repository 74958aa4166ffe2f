/** The documents that a model reads first. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { faults } from '#kernel/contract/fault.ts'
import { freshGateway } from '../harness/gateway.ts'
import { operationsOf } from '../proof/support/contracts.ts'

let gateway: Awaited<ReturnType<typeof freshGateway>>

before(async () => {
  gateway = await freshGateway()
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
})

const textOf = async (path: string) => (await fetch(`${gateway.url}${path}`)).text()

test('each document is public, open to every origin and has a validator', async () => {
  for (const [path, type] of [
    ['/llms.txt', 'text/plain; charset=utf-8'],
    ['/skill.md', 'text/markdown; charset=utf-8'],
    ['/error-catalog.json', 'application/json; charset=utf-8'],
  ] as const) {
    const first = await fetch(`${gateway.url}${path}`, { headers: { origin: 'https://example.com' } })
    await first.text()
    assert.deepEqual([first.status, first.headers.get('content-type')], [200, type])
    assert.equal(first.headers.get('access-control-allow-origin'), '*')
    const etag = first.headers.get('etag')!
    const again = await fetch(`${gateway.url}${path}`, { headers: { 'if-none-match': etag } })
    assert.equal(again.status, 304)
  }
})

test('llms.txt lists every operation, and skill.md every code and every operation that makes a task', async () => {
  const [llms, skill] = [await textOf('/llms.txt'), await textOf('/skill.md')]
  for (const { name, entry } of await operationsOf(gateway.url)) {
    assert.ok(llms.includes(`- \`${entry.method} ${entry.path}\` (\`${name}\``), name)
    if (entry.kind === 'task') assert.ok(skill.includes(`\`${name}\``), name)
  }
  for (const [code, { status }] of Object.entries(faults))
    assert.ok(skill.includes(`| \`${code}\` | ${status} |`), code)
})

test('every address of the documents answers, and the program of skill.md runs', async () => {
  const [llms, skill] = [await textOf('/llms.txt'), await textOf('/skill.md')]
  const addresses = [...llms.matchAll(/\]\((http[^)]+)\)/g)].map(([, address]) => address!)
  assert.equal(addresses.length, 4)
  for (const address of addresses) assert.equal((await fetch(address)).status, 200, address)
  const program = /^```js\n([\s\S]*?)^```/m.exec(skill)?.[1]
  assert.ok(program)
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  assert.match(stdout, /^agt_\w{26} 2\n$/)
})
