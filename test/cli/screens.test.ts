/** What a trader sees on screens of 60, 80 and 120 columns: chosen columns, whole units, and no broken line. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { dataFolder, freshGateway } from '../harness/gateway.ts'
import {
  porticoOnScreen,
  porticoOnTerminal,
  type Shown,
  skipWithoutTerminal,
} from '../harness/pseudo-terminal.ts'

const widths = [60, 80, 120]

describe('the screens of the command line', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  const folder = dataFolder()
  before(async () => {
    gateway = await freshGateway()
    for (const words of [
      'init',
      'perp setup --wait',
      'perp fund --amount-usd 500 --wait',
      'perp open --asset BTC --side long --notional-usd 200 --leverage 2 --sl-price 1000 --wait',
      'spot-venue buy --asset HYPE --notional-usdc 50 --wait',
      'earn deposit --amount-usdc 25 --wait',
      'limit-orders create --chain-id-in base --token-in USDC --token-out ETH --amount-usd 20 --price-usd-trigger 500 --condition lte --wait',
    ])
      await portico(words)
  })
  after(async () => {
    await gateway?.[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  const env = () => ({ XDG_CONFIG_HOME: folder.path, PORTICO_URL: gateway.url })

  async function portico(words: string, columns = 80): Promise<Shown> {
    const shown = await porticoOnScreen(words.split(' '), { columns, env: env() })
    assert.equal(shown.code, 0, `${words}\n${shown.screen}`)
    return shown
  }
  const headersOf = (screen: string): string[] =>
    screen.split('\n').flatMap((line) => (/^[A-Z0-9][A-Z0-9 ]+$/.test(line) ? [line] : []))

  const screens: Readonly<Record<string, readonly RegExp[]>> = {
    status: [
      /^gateway +http/m,
      /^you +agt_/m,
      /^money +\$\d/m,
      /^limits +\$25,000\.00 for each transaction/m,
    ],
    holdings: [
      /^CHAIN +SYMBOL +BALANCE +PRICE +VALUE/m,
      /^Base +USDC +[\d,.]+ +\$1\.00 +\$/m,
      /^perpetuals +\$/m,
      /^total +\$/m,
    ],
    positions: [
      /^Perpetuals:\n/m,
      /^BTC +long +0\.00\d+/m,
      /^Spot:\n/m,
      /^HYPE /m,
      /^Vault:\n/m,
      /^Limit orders:\n/m,
      /20 USDC +ETH +lte +\$500\.00/,
    ],
    'price btc hype': [/^BTC perp +[\d,.]+ +-?[\d.]+%/m, /^HYPE spot /m],
    'perp markets': [/^SYMBOL .*MARK/m, /^BTC +[\d,.]+ +-?[\d.]+% +\$/m],
    'perp orders': [/^BTC +long /m, /^ +account value +\$/m],
    'predmkt markets': [/Yes 0\.\d+, No 0\.\d+/, /OUTCOMES/],
    'wallets list': [/^evm +0x[0-9a-fA-F]{40}/m],
    'tasks list': [/^ *[0-9a-f-]{36}/m, /-25 USDC, \+/],
    'limit-orders list': [/20 USDC/, /\$500\.00/],
    'policy show': [/^per transaction +\$25,000\.00$/m],
    'user show': [/^agent id +agt_/m],
  }
  for (const [words, expected] of Object.entries(screens))
    test(`portico ${words}`, async () => {
      for (const columns of widths) {
        const { screen, overflows } = await portico(words, columns)
        assert.deepEqual(overflows, [], `${columns} columns`)
        if (columns < 80) continue
        for (const pattern of expected) assert.match(screen, pattern)
        for (const header of headersOf(screen))
          assert.ok(header.trim().split(/ {2,}/).length <= 7, `more than seven columns: ${header}`)
        assert.doesNotMatch(screen, /0x[0-9a-f]{64}.*0x|\b\d{16,}\b(?! *$)/m, 'no smallest units')
      }
    })

  test('a swap says what moved, in whole units, and its task again says the same', async () => {
    for (const columns of widths) {
      const { screen, overflows } = await portico(
        'swap execute --chain-id-in base --token-in USDC --token-out ETH --amount-usd 20 --wait',
        columns,
      )
      assert.deepEqual(overflows, [])
      assert.match(screen, /^what +swap$/m)
      assert.match(screen, /^status +completed, executed$/m)
      assert.match(screen, /^moved +-20 USDC on Base\n +\+0\.0\d+ ETH on Base$/m)
      assert.doesNotMatch(screen, /20000000|amount in/)
      assert.ok(screen.trim().split('\n').length <= 12, screen)
      const taskId = /^task +([0-9a-f-]{36})$/m.exec(screen)?.[1]
      const again = await portico(`tasks get ${taskId}`, columns)
      assert.deepEqual(again.overflows, [])
      assert.equal(again.screen.trim(), screen.trim())
    }
  })

  test('a dry run of a swap says what would come out, in whole units', async () => {
    const { screen, overflows } = await portico(
      'swap execute --chain-id-in base --token-in USDC --token-out ETH --amount-usd 20 --dryrun',
      60,
    )
    assert.deepEqual(overflows, [])
    assert.match(screen, /^ *amount in +20 USDC$/m)
    assert.match(screen, /^ *amount out +0\.0\d+ ETH$/m)
  })

  test('a terminal is asked for its width', { skip: skipWithoutTerminal }, async () => {
    for (const columns of [60, 120]) {
      const { code, screen, overflows } = await porticoOnTerminal(['tasks', 'list'], { columns, env: env() })
      assert.deepEqual([code, overflows], [0, []])
      assert.equal(/^[0-9a-f-]{36} {2}\w/m.test(screen), columns === 120, screen)
    }
  })

  test('--wide has every field as the gateway sent it, and --json is the answer itself', async () => {
    const wide = await portico('tasks list --wide')
    assert.match(wide.raw, /TASK_ID.*BALANCE_CHANGES/)
    assert.match(wide.raw, /"amount":"-25000000"/)
    const json = JSON.parse((await portico('earn positions --json')).raw) as { positions: object[] }
    assert.equal(json.positions.length, 1)
  })

  test('a command that is refused says so in the words of the command line', async () => {
    const refused = await porticoOnScreen(['earn', 'deposit', '--amount-usdc', '-5'], {
      columns: 60,
      env: env(),
    })
    assert.deepEqual([refused.code, refused.overflows], [2, []])
    assert.match(refused.screen, /^ {2}--amount-usdc: /m)
  })
})
