/** `portico chat` on a terminal: a child process with a screen of its own, as a person has it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from '../harness/child-environment.ts'
import { connectionProxy } from '../harness/connection-proxy.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

const main = fileURLToPath(new URL('../../src/edges/cli/main.ts', import.meta.url))
/** Runs a command with a terminal. */
const scriptProgram = '/usr/bin/script'
const skip =
  process.platform === 'linux' && existsSync(scriptProgram) ? false : 'there is no script of util-linux'
const controlC = '\u0003'
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

describe('portico chat on a terminal', { skip }, () => {
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

  type Options = { url?: string; onScreen?: (screen: string, type: (text: string) => void) => void }
  /** What a person sees at the end; the notes are dimmed, and that is taken out. */
  async function portico(words: string[], { url = app.url, onScreen }: Options = {}) {
    const command = [process.execPath, main, ...words, '--base-url', url].map(quoted).join(' ')
    const child = spawn(scriptProgram, ['-qefc', command, '/dev/null'], {
      env: {
        ...childEnvironment(),
        PORTICO_TOKEN: user.token,
        XDG_CONFIG_HOME: folder.path,
        TERM: 'xterm',
        COLUMNS: '100',
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    let raw = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      raw += text
      onScreen?.(raw, (typed) => child.stdin.write(typed))
    })
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how a screen dims.
    const screen = raw.replaceAll('\r', '').replace(/\u001b\[\d+m/g, '')
    return { code, raw, screen }
  }

  test('an answer ends its line before what is noted, and the thread can be gone on with', async () => {
    const { code, screen, raw } = await portico([
      'chat',
      script({ plan: 'Look' }, { call: 'credits_packs' }, { plan: 'Think' }, { say: 'So it is.' }),
    ])
    assert.equal(code, 0, screen)
    const [, threadId] = /go on with: portico chat --thread (\S+) "\.\.\."\n$/.exec(screen) ?? []
    assert.equal(
      screen,
      `· Look\n→ credits_packs\ncredits_packs ok. \n· Think\nSo it is.\ncompleted, 1 credit used, 199 left\ngo on with: portico chat --thread ${threadId} "..."\n`,
    )
    assert.ok(raw.includes('\u001b[2m· Look\u001b[22m'), 'notes are dimmed')
    const next = await portico(['chat', '--thread', threadId!, script({ say: 'More.' })])
    assert.match(next.screen, /^More\.\ncompleted/)
  })

  test('a recommendation is shown argument by argument, and its command accepts it', async () => {
    const { screen } = await portico(['chat', script({ call: 'test_move', input: { units: 7 } })])
    assert.match(
      screen,
      /\nRecommended: Move units\n {2}units 7\n {2}Operation: test_move\n {2}Valid until: \S+\n/,
    )
    const command = / {2}portico (chat decide \S+ \S+ --status accepted)\n/.exec(screen)?.[1]
    assert.ok(command, screen)
    const decided = await portico(command.split(' '))
    assert.match(decided.screen, /status {13}accepted\n/)
    const taskId = /task_id {12}(\S+)/.exec(decided.screen)?.[1]
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
        onScreen(seen) {
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
      onScreen(seen, type) {
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
