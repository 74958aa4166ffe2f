import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Command } from '#world/hyperliquid/apply.ts'
import { venueMachine } from '#world/hyperliquid/journal.ts'
import { conservation } from '#world/hyperliquid/settlement.ts'
import { openJournal, replay, writeLine } from '#world/venue-core/journal.ts'
import { dollars, limit, startMs, userAt } from './venue/in-memory-venue.ts'

let dataDir: string
before(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'venue-history-'))
})
after(() => rmSync(dataDir, { recursive: true, force: true }))

const user = userAt(0x61)
const machine = () => venueMachine(dataDir, 3)
const open = () => openJournal(dataDir, machine(), startMs)
type Open = ReturnType<typeof open>

let nowMs = startMs
const run = ({ journal, venue }: Open, command: Command) => {
  nowMs += 1
  journal.append(writeLine(command, nowMs))
  replay(machine(), venue, command, nowMs)
}
const order = (opened: Open, wire: object) =>
  run(opened, {
    kind: 'act',
    signer: user,
    userSigned: false,
    nonce: nowMs,
    action: { type: 'order', orders: [wire], grouping: 'na' },
  })
const bytesOf = (name: string) => statSync(join(dataDir, name)).size
const segments = () => readdirSync(dataDir).filter((name) => name.startsWith('history-'))
const trade = (opened: Open, count: number) => {
  for (let i = 0; i < count; i += 1)
    order(opened, limit(0, i % 2 === 0, i % 2 === 0 ? '101000' : '99000', '0.01', 'Ioc'))
}

test('a save writes the changes, and a restart has every order, fill and balance', () => {
  const first = open()
  run(first, { kind: 'settings', settings: { walking: false } })
  run(first, { kind: 'price', coin: 'BTC', usd: 100_000, pin: true })
  run(first, { kind: 'credit', user, coin: 'perp', units: dollars(1_000_000) })
  trade(first, 400)
  first.journal.snapshot(first.venue)
  const snapshot = bytesOf('venue.snapshot')
  const [oldest = ''] = segments()
  const written = statSync(join(dataDir, oldest)).mtimeMs
  for (let round = 0; round < 3; round += 1) {
    trade(first, 400)
    order(first, limit(0, true, '90000', '0.01'))
    first.journal.snapshot(first.venue)
  }
  assert.equal(segments().length, 4)
  assert.equal(statSync(join(dataDir, oldest)).mtimeMs, written)
  assert.ok(bytesOf('venue.snapshot') < snapshot * 1.5, 'the snapshot does not grow with the history')
  trade(first, 20)
  first.journal.close()
  const second = open()
  assert.deepEqual(second.venue.state, first.venue.state)
  assert.deepEqual([...second.venue.state.orders.keys()], [...first.venue.state.orders.keys()])
  assert.equal(conservation(second.venue).perp, 0n)
  trade(second, 2)
  second.journal.snapshot(second.venue)
  second.journal.close()
  const third = open()
  assert.deepEqual(third.venue.state, second.venue.state)
  third.journal.close()
})

test('the oldest history of an account is dropped, in memory and on disk, and open orders never are', () => {
  const opened = open()
  const { state } = opened.venue
  const account = () => state.accounts.get(user)
  const resting = account()?.open.size
  for (let i = 0; i < 5; i += 1) {
    for (let k = 0; k < 2_500; k += 1) order(opened, limit(0, true, '100000.123', '0.01'))
    opened.journal.snapshot(opened.venue)
  }
  assert.equal(account()?.orders.length, 10_000)
  assert.equal(account()?.open.size, resting)
  assert.equal(account()?.fills.length, 0)
  assert.ok(segments().length <= 5, segments().join(' '))
  opened.journal.close()
  const again = open()
  assert.deepEqual(again.venue.state, state)
  again.journal.close()
})
