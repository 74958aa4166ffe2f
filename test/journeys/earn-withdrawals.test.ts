/** Concurrent withdrawals of positions: the ledger books the amounts that the chain pays. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type CrashApp, createCrashApp } from '../crash/crash-app.ts'
import type { Gateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type Positions } from './users.ts'
import { type World, worldOf } from './world.ts'

describe('positions withdrawn in quick succession', () => {
  let crashApp: CrashApp
  let gateways: Gateway[]
  let world: World
  before(async () => {
    crashApp = await createCrashApp()
    gateways = await Promise.all([crashApp.gateway(), crashApp.gateway()])
    world = await worldOf(crashApp.control)
  })
  after(async () => {
    for (const gateway of gateways ?? []) await gateway.stop()
    await crashApp?.[Symbol.asyncDispose]()
  })

  const positionsOf = async (person: Person) => (await person.call<Positions>('GET /v1/earn/positions')).body
  const ledgerShares = async (person: Person): Promise<bigint> => {
    const { rows } = await crashApp.admin.query(
      `select coalesce(sum(avail + held), 0)::text as shares from account a join app_user u on u.id = a.owner
       where u.agent_id = $1 and a.sub_account like 'position:%'`,
      [person.agentId],
    )
    return BigInt(rows[0].shares)
  }
  const open = async (person: Person, amounts: readonly number[]) => {
    const opened: { id: string; amount: number }[] = []
    for (const amount of amounts) {
      const { status, body } = await person.deposit(String(amount))
      assert.deepEqual([status, body.outcome], [200, 'executed'], JSON.stringify(body))
      opened.push({ id: body.result.position_id, amount })
    }
    return opened
  }
  /** 5 to 60 USDC; together 390. */
  const amounts = Array.from({ length: 12 }, (_, n) => 5 * (n + 1))

  for (const [title, urls] of [
    ['through one instance', () => [gateways[0]!.url]],
    ['through two instances in turn', () => gateways.map(({ url }) => url)],
  ] as const)
    test(`12 positions of 5 to 60 USDC withdrawn whole ${title} leave no shares`, async () => {
      const person = await createFundedPerson(gateways[0]!.url)
      const start = await world.usdcOf(person.evm)
      const opened = await open(person, amounts)
      const at = urls()
      const answers = await Promise.all(
        opened.map(async ({ id }, n) => {
          await delay(n * 15 + ((n * 7) % 4) * 15)
          return person.withdraw({ position_id: id }, { at: at[n % at.length]! })
        }),
      )
      for (const { status, body } of answers)
        assert.deepEqual([status, body.outcome], [200, 'executed'], JSON.stringify(body))
      assert.equal(await world.sharesOf(person.evm), 0n)
      assert.equal(await ledgerShares(person), 0n)
      const end = await world.usdcOf(person.evm)
      // The vault rounds each deposit and each withdrawal down by less than a unit.
      assert.ok(start - end <= 24n && start >= end, `${start - end} units are missing`)
      const { positions } = await positionsOf(person)
      assert.ok(positions.every(({ status, shares }) => status === 'withdrawn' && shares === '0'))
    })
})
