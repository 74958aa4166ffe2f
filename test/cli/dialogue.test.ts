/** `portico chat` alone: a dialogue on a terminal of 80 columns. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { type ChatApp, type ChatUser, openChatApp } from '../chat/chat-app.ts'
import { script } from '../chat/scripted-answerer.ts'
import { testOperations } from '../chat/test-operations.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { porticoOnTerminal, type Shown, skipWithoutTerminal } from '../harness/pseudo-terminal.ts'

const columns = 80
const [controlC, controlD, backspace, up, enter] = ['\u0003', '\u0004', '\u007f', '\u001b[A', '\r']

describe('portico chat without a question', { skip: skipWithoutTerminal }, () => {
  let app: ChatApp
  let user: ChatUser
  const folder = dataFolder()
  before(async () => {
    app = await openChatApp({ overrides: { addOperations: testOperations } })
    user = await app.user()
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  /** Types each line at the next empty prompt, or where its own mark is on the screen. */
  function dialogue(lines: readonly (string | { at: RegExp; type: string })[]): Promise<Shown> {
    let [next, rows] = [0, 0]
    return porticoOnTerminal(['chat', '--base-url', app.url], {
      columns,
      env: { PORTICO_TOKEN: user.token, XDG_CONFIG_HOME: folder.path },
      onScreen({ screen, type }) {
        const line = lines[next]
        if (line === undefined) return
        const shown = screen.split('\n')
        if (typeof line === 'string') {
          if (shown.at(-1) !== '>' || shown.length <= rows) return
          rows = shown.length
          next++
          type(line)
        } else if (line.at.test(screen)) {
          next++
          type(line.type)
        }
      },
    })
  }
  const asked = (...given: Parameters<typeof script>) => `${script(...given)}${enter}`

  test('ten turns are one thread, with the plan in one line', async () => {
    const turns = Array.from({ length: 10 }, (_, at) =>
      asked({ plan: `Look ${at}` }, { plan: 'Think' }, { say: `Answer ${at}.` }),
    )
    const { code, screen, raw, overflows } = await dialogue([...turns, controlD])
    assert.equal(code, 0, screen)
    // Only what is typed may be longer than the screen.
    assert.deepEqual(
      overflows.filter((line) => !line.includes('"')),
      [],
    )
    for (let at = 0; at < 10; at++)
      assert.match(screen, new RegExp(`^Answer ${at}\\.\\n2 steps \\(/plan\\), 1 credit used`, 'm'))
    assert.doesNotMatch(screen, /· Look/, 'the plan is folded')
    assert.match(raw, /· Look 3/, 'and shown while it runs')
    const threads = await user.get<{ message_count: number }[]>('/v1/chat/threads')
    assert.deepEqual(
      threads.map(({ message_count }) => message_count),
      [20],
    )
  })

  test('lines are edited and brought back, also those of an earlier dialogue', async () => {
    const { screen } = await dialogue([
      `${script({ say: 'Yes.' })}x${backspace}${enter}`,
      `${up}${enter}`,
      controlD,
    ])
    assert.equal(screen.split('\nYes.\n').length, 3, screen)
    const later = await dialogue([`${up}${enter}`, controlD])
    assert.match(later.screen, /\nYes\.\n/)
    assert.equal(statSync(`${folder.path}/portico/chat-history.json`).mode & 0o777, 0o600)
  })

  test('/plan unfolds the last plan, and /help lists the commands', async () => {
    const { screen } = await dialogue([
      asked({ plan: 'Look' }, { say: 'So.' }),
      `/plan${enter}`,
      `/help${enter}`,
      `/no${enter}`,
      `/quit${enter}`,
    ])
    assert.match(screen, /\/plan\n· Look\n/)
    assert.match(screen, /\/accept \[number\] +accept what is recommended/)
    assert.match(screen, /there is no \/no; \/help lists the commands/)
  })

  test('what is recommended is accepted in the dialogue, and its end is shown', async () => {
    const { screen } = await dialogue([
      asked({ call: 'test_move', input: { units: 7 } }),
      `/accept${enter}`,
      `/accept${enter}`,
      controlD,
    ])
    assert.match(screen, /\nRecommended: Move units\n {2}units 7\n/)
    assert.match(screen, /\n\/accept does it, \/decline does not\n/)
    assert.match(screen, /^what +test move\nstatus +completed, executed$/m)
    assert.match(screen, /nothing is recommended/)
  })

  test('Ctrl-C stops the answer, and the dialogue goes on', async () => {
    const { code, screen } = await dialogue([
      asked({ say: 'Part' }, { hang: true }),
      { at: /^Part$/m, type: controlC },
      asked({ say: 'Again.' }),
      controlD,
    ])
    assert.equal(code, 0)
    assert.match(screen, /the answer was stopped\n[\s\S]*\nAgain\.\n/)
    const { items } = await user.get<{ items: { task_id: string; status: string }[] }>(
      '/v1/tasks?kind=chat&limit=2',
    )
    await eventually(async () => {
      const { status } = await user.get<{ status: string }>(`/v1/tasks/${items[1]!.task_id}`)
      return status === 'cancelled' ? true : undefined
    }, 'the answer is stopped')
  })

  test('a refused question leaves the dialogue open', async () => {
    const { code, screen } = await dialogue([
      asked({ fail: 'fault' }),
      asked({ say: 'Still here.' }),
      controlD,
    ])
    assert.equal(code, 0)
    assert.match(screen, /portico: conflict: .+\n[\s\S]*\nStill here\.\n/)
  })

  test('a table of an answer fits the screen', async () => {
    const cell =
      'a long description of what this coin is for, in so many words that no screen has room for them'
    const table = `| Coin | Use | Worth |\n|---|---|---|\n| ETH | ${cell} | 1,000 |\n`
    const { screen } = await dialogue([asked({ say: `Here:\n${table}\nThat is all.` }), controlD])
    const lines = screen.split('\n')
    const head = lines.findIndex((line) => /^Coin +Use +Worth$/.test(line))
    assert.ok(head > 0, screen)
    assert.match(lines[head + 1] ?? '', /^ETH +a long description.*… +1,000$/)
  })
})
