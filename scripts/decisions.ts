/** Writes docs/decisions/index.md from the head of each decision; with --check it only reports whether it is current. */
import { readdirSync, readFileSync } from 'node:fs'
import { root } from './environment.ts'
import { writeGenerated } from './generated-file.ts'

const areas = {
  tasks: 'Tasks, ledger and database',
  chains: 'Chains: signing, sponsoring, nonces',
  venue: 'The venue for perpetuals and spot',
  swaps: 'Swaps, bridges and the security check',
  orders: 'Orders that wait for a price',
  credits: 'Credits and backends',
  identity: 'Sign-in, tokens and apps',
  people: 'People, linked agents and approvals',
  webhooks: 'Webhooks and files',
  chat: 'Chat, models and the agent service',
  doors: 'Requests, rate limits and fairness',
  clients: 'SDK, command line, package and MCP',
  operation: 'Operation: start, stop, backup, failover, retention',
  world: 'The local world',
  code: 'Code, packages and tests',
}

type Decision = { file: string; number: number; title: string; status: string; area: string }

const folder = `${root}/docs/decisions`
const files = readdirSync(folder).filter((name) => /^\d{4}-.*\.md$/.test(name))
const numbers = new Set(files.map((name) => Number(name.slice(0, 4))))

function decision(file: string): Decision {
  const head = /^# (\d{4}) (.+)\n\nstatus: (.+)\narea: (\w+)\n\n/.exec(
    readFileSync(`${folder}/${file}`, 'utf8'),
  )
  const [, number = '', title = '', status = '', area = ''] = head ?? []
  const others = [...status.matchAll(/\d+/g)].map(([each]) => Number(each))
  const isKnown = /^(?:accepted(?:; in part superseded by \d+(?: and \d+)*)?|superseded by \d+)$/.test(status)
  if (
    !file.startsWith(`${number}-`) ||
    !isKnown ||
    !(area in areas) ||
    !others.every((each) => numbers.has(each))
  )
    throw new Error(
      `${file} begins with its number and title, its status, and one of the areas of this script`,
    )
  return { file, number: Number(number), title, status, area }
}

const decisions = files.sort().map(decision)
const line = ({ file, number, title, status }: Decision) => `- [${number}](${file}) ${title} (${status})`
const text = [
  '# Decisions',
  '',
  'What was decided, by area, with the reasons behind each link. A decision is never edited but for its status: a later one supersedes it, or a part of it. The numbers have gaps. `node scripts/decisions.ts` writes this page from the decisions.',
  ...Object.entries(areas).flatMap(([area, title]) => [
    '',
    `## ${title}`,
    ...decisions.filter((each) => each.area === area).map(line),
  ]),
  '',
].join('\n')

writeGenerated({ file: 'docs/decisions/index.md', text, source: 'the decisions' })
