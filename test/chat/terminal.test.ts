/** `portico chat` on a terminal: a child process with a screen of its own, as a person has it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { connectionProxy } from '../harness/connection-proxy.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { porticoOnTerminal, skipWithoutTerminal, type Typist } from '../harness/pseudo-terminal.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

const controlC = '\u0003'

describe('portico chat on a terminal', { skip: skipWithoutTerminal }, () => {
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

  const portico = (words: string[], { url = app.url, onScreen }: Options = {}) =>
    porticoOnTerminal([...words, '--base-url', url], {
      columns: 120,
      env: { PORTICO_TOKEN: user.token, XDG_CONFIG_HOME: folder.path },
      onScreen,
    })
  type Options = { url?: string; onScreen?: (typist: Typist) => void }

  test('an answer ends its line before what is noted, and the thread can be gone on with', async () => {
    const { code, screen, raw } = await portico([
      'chat',
      script({ plan: 'Look' }, { call: 'credits_packs' }, { plan: 'Think' }, { say: 'So it is.' }),
    ])
    assert.equal(code, 0, screen)
    const [, threadId] = /go on with: portico chat --thread (\S+) "\.\.\."\n$/.exec(screen) ?? []
    assert.equal(
      screen,
      `· Look\n→ credits_packs\ncredits_packs ok.\n· Think\nSo it is.\ncompleted, 1 credit used, 199 left\ngo on with: portico chat --thread ${threadId} "..."\n`,
    )
    assert.ok(raw.includes('\u001b[2m· Look\u001b[22m'), 'notes are dimmed')
    const next = await portico(['chat', '--thread', threadId!, script({ say: 'More.' })])
    assert.match(next.screen, /^More\.\ncompleted/)
  })

  test('a recommendation is shown argument by argument, and its command accepts it', async () => {
    const { screen } = await portico(['chat', script({ call: 'test_move', input: { units: 7 } })])
    assert.match(
      screen,
      /\nRecommended: Move units\n {2}units 7\n {2}Operation: test_move\n {2}Valid until: .+\n/,
    )
    const command = / {2}portico (chat decide \S+ \S+ --status accepted)\n/.exec(screen)?.[1]
    assert.ok(command, screen)
    const decided = await portico(command.split(' '))
    assert.match(decided.screen, /^status +accepted$/m)
    const taskId = /^task id +(\S+)$/m.exec(decided.screen)?.[1]
    await eventually(async () => {
      const { status } = await user.get<{ status: string }>(`/v1/tasks/${taskId}`)
      return status === 'completed' ? true : undefined
    }, 'the task has run')
  })

  test('a connection that is lost in the middle of an answer is noted, and the answer goes on where it was', async () => {
    await using proxy = await connectionProxy(app.url)
    let cuts = 0
    const letters = 'abcdefghijklmnopqrstuvwxyz'
    const { code, screen } = await portico(
      ['chat', script({ call: 'credits_packs' }, { spell: letters, everyMs: 40 })],
      {
        url: proxy.url,
        onScreen({ screen: seen }) {
          if (cuts > 0 || !/abcd/.test(seen)) return
          cuts++
          proxy.cut()
        },
      },
    )
    assert.equal(code, 0, screen)
    assert.equal(cuts, 1)
    const note = '\nthe connection was lost; the answer goes on when it is back\n'
    assert.equal(screen.split(note).length, 2, screen)
    assert.ok(
      screen.replace(note, '').includes(`credits_packs ok. ${letters}\ncompleted, 1 credit used`),
      screen,
    )
  })

  test('Ctrl-C stops the answer', async () => {
    let isTyped = false
    const { screen } = await portico(['chat', script({ say: 'Part' }, { hang: true })], {
      onScreen({ screen: seen, type }) {
        if (isTyped || !seen.includes('Part')) return
        isTyped = true
        type(controlC)
      },
    })
    assert.match(screen, /\^C\nthe answer was stopped\n$/)
    const { items } = await user.get<{ items: { task_id: string }[] }>('/v1/tasks?kind=chat&limit=1')
    await eventually(async () => {
      const { status } = await user.get<{ status: string }>(`/v1/tasks/${items[0]!.task_id}`)
      return status === 'cancelled' ? true : undefined
    }, 'the answer is stopped')
  })
})
