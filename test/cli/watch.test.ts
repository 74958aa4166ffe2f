/** `portico watch tasks` over a restart of the gateway, on a terminal. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { dataFolder, freshGateway, type Gateway, launch } from '../harness/gateway.ts'
import { porticoOnTerminal, skipWithoutTerminal } from '../harness/pseudo-terminal.ts'
import { worldOf } from '../journeys/world.ts'

const controlC = '\u0003'
const columns = 80

describe('portico watch tasks', { skip: skipWithoutTerminal }, () => {
  let first: Awaited<ReturnType<typeof freshGateway>>
  let second: Gateway
  let env: Record<string, string>
  const [home, data] = [dataFolder(), dataFolder()]
  before(async () => {
    first = await freshGateway()
    const { env: upstreams } = await worldOf(first.world)
    env = { ...upstreams, DATA_DIR: data.path, DATABASE_URL: first.databaseUrl }
    second = await launch({ env })
  })
  after(async () => {
    await second?.stop()
    await first?.[Symbol.asyncDispose]()
    home[Symbol.dispose]()
    data[Symbol.dispose]()
  })

  const portico = (words: string, onScreen?: Parameters<typeof porticoOnTerminal>[1]['onScreen']) =>
    porticoOnTerminal(words.split(' '), {
      columns,
      env: { XDG_CONFIG_HOME: home.path, PORTICO_URL: second.url },
      onScreen,
    })

  test('it says what happens from now on, and goes on after a restart of the gateway', async () => {
    for (const words of ['init', 'earn deposit --amount-usdc 5 --wait'])
      assert.equal((await portico(words)).code, 0)
    const steps: (() => Promise<unknown> | void)[] = [
      () => second.stop(),
      async () => {
        second = await launch({ env: { ...env, PORT: new URL(second.url).port } })
      },
      () => portico('earn deposit --amount-usdc 7 --wait'),
    ]
    const marks = [/watching; Ctrl-C/, /the connection is lost/, /portico: the gateway is back/]
    const pending: unknown[] = []
    let reached = 0
    let isInterrupted = false
    const { code, screen, overflows } = await portico('watch tasks', ({ screen, type }) => {
      if (reached < marks.length && marks[reached]!.test(screen)) pending.push(steps[reached++]!())
      if (isInterrupted || !/completed, executed {2}-7 USDC/.test(screen)) return
      // Only once, although the echo comes back as more of the screen: a second one exits with 130.
      isInterrupted = true
      type(controlC)
    })
    await Promise.all(pending)
    assert.equal(code, 0, screen)
    assert.deepEqual(overflows, [])
    assert.match(screen, /^\d\d:\d\d:\d\d {2}earn deposit {2}completed, executed {2}-7 USDC, \+\d/m)
    assert.doesNotMatch(screen, /-5 USDC/, 'what was before is not repeated')
    assert.equal(screen.split('the connection is lost').length, 2, screen)
    assert.equal(screen.split('portico: the gateway is back').length, 2, screen)
  })

  test('--after begins with what is stored', async () => {
    const { code, screen } = await portico('watch tasks --after 0 --items 5')
    assert.equal(code, 0)
    assert.match(screen, /faucet grant/)
    assert.match(screen, /earn deposit {2}completed, executed {2}-5 USDC/)
  })
})
