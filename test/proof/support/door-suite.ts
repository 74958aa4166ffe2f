/** Another door and the door of HTTP answer alike, results and faults, for every operation of the product. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { namesIn } from '#invoke/input-location.ts'
import type { FaultCode } from '#kernel/contract/fault.ts'
import { isKeyed, type RateClass, takesWait } from '#kernel/contract/operation.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import { eventually } from '../../harness/gateway.ts'
import { type DoorReply, loopback } from '../../harness/in-process-door.ts'
import { operations as contractOperations } from './contracts.ts'
import { differencesOf } from './door-differences.ts'
import { type SchemeName, schemes } from './door-schemes.ts'
import { faultOf, type Step } from './door-step.ts'
import { journey, wait } from './every-operation.ts'
import { minimalInput, mistakesOf } from './input-mistakes.ts'
import { isShort } from './seed.ts'
import { actsOfPeople } from './steps-of-people.ts'
import { type Authorization, type CreateDoor, openTwins, type Replies, type Twins } from './twins.ts'

type Json = Record<string, unknown>

const points = 20_000
/** Balancers ask for the health over HTTP with any query and under any load: there it refuses nobody. */
const unlimited = 'discovery_health'

/** A short run asks once; people may call more operations than key pairs. */
const shortSchemes: readonly SchemeName[] = ['a person']

export function compareDoors(label: string, createDoor: CreateDoor): void {
  for (const scheme of isShort ? shortSchemes : (Object.keys(schemes) as SchemeName[]))
    describe(`${label} and HTTP, asked by ${scheme}`, () => {
      const comparison = createComparison(label, createDoor, scheme)
      compareResults(comparison)
      compareRefusals(comparison)
    })
}

type Comparison = ReturnType<typeof createComparison>

function createComparison(label: string, createDoor: CreateDoor, scheme: SchemeName) {
  const { isPerson } = schemes[scheme]
  let gateway: Twins
  let differing: string[]

  before(async () => {
    gateway = await openTwins(points, createDoor, schemes[scheme])
  })
  after(async () => {
    console.log(
      `doors: ${label} by ${scheme}, ${gateway?.count()} requests, ${gateway?.operations.length} operations`,
    )
    await gateway?.[Symbol.asyncDispose]()
  })

  /** Asks both doors, and notes where they differ. */
  async function compare(what: string, question: Parameters<Twins['ask']>[0]): Promise<Replies> {
    const replies = await gateway.ask(question)
    differing.push(...differencesOf(`${question.name}: ${what}`, replies))
    return replies
  }

  return {
    gateway: () => gateway,
    compare,
    test: (title: string, run: () => Promise<void>) =>
      test(title, async () => {
        differing = []
        await run()
        assert.deepEqual(differing, [])
      }),
    async take(steps: readonly Step[]): Promise<void> {
      for (const step of steps) {
        const { keep, fault: _, only, until, ...question } = step
        if (only !== undefined && only !== scheme) continue
        if (until)
          await eventually(
            async () => {
              const replies = await gateway.ask(question)
              return replies.every((reply) => until(resultOf(reply) as Json)) || undefined
            },
            question.name,
            30_000,
          )
        const fault = faultOf(step, scheme)
        for (const [index, reply] of (await compare('a step', question)).entries()) {
          assert.equal(codeOf(reply), fault, `${question.name}: ${JSON.stringify(reply)}`)
          if (fault === undefined) keep?.(resultOf(reply) as Json, gateway.twins[index]!.known)
        }
      }
    },
    limitedOperations: () =>
      gateway.operations.filter(
        ({ name, entry }) => name !== unlimited && (isPerson || entry.access !== 'person'),
      ),
  }
}

const resultOf = (reply: DoorReply): unknown => {
  assert.ok('result' in reply, JSON.stringify(reply))
  return reply.result
}
const codeOf = (reply: DoorReply): unknown => ('fault' in reply ? reply.fault.code : undefined)

const bySpareToken: Authorization = async ({ user }) => `Bearer ${await user.spareToken()}`
/** One of its own for the operation that ends it. */
const credentialFor = (name: string): { authorization?: Authorization } =>
  name === 'auth_revoke' ? { authorization: bySpareToken } : {}

function compareResults({ gateway, compare, take, test }: Comparison): void {
  test('a journey through every operation is answered alike', async () => {
    const all = (await contractOperations())
      .filter(({ entry }) => entry.access !== 'backend')
      .map(({ name }) => name)
      .sort()
    const { operations } = gateway()
    assert.deepEqual(operations.map(({ name }) => name).sort(), all)
    assert.deepEqual([...new Set(journey.map(({ name }) => name))].sort(), all)
    await take(journey)
  })

  test('the smallest request, its repetition and another one under its key are answered alike', async () => {
    let [answered, replayed, conflicts] = [0, 0, 0]
    await gateway().ask({ name: 'policy_tighten', key: 'taken' })
    for (const { name, entry } of gateway().operations) {
      if (entry.kind === 'stream') continue
      // A task that runs is another one a moment later.
      const input = { ...minimalInput(entry), ...(takesWait(entry) ? wait : {}) }
      if (!isKeyed(entry)) {
        await compare('the smallest request', { name, input })
        continue
      }
      const key = `key-${name}`
      const first = await compare('under a key', { name, input, key, ...credentialFor(name) })
      const again = await compare('again', { name, input, key })
      const other = await compare('under a key of another request', { name, input, key: 'taken' })
      for (const index of [0, 1] as const) {
        const [earlier, later] = [first[index], again[index]]
        if (!('result' in earlier)) continue
        answered++
        if ('result' in later && later.replayed && later.key === key) replayed++
      }
      conflicts += other.filter((reply) => codeOf(reply) === 'idempotency_conflict').length
    }
    assert.equal(replayed, answered)
    assert.ok(answered >= 16 && conflicts >= 38, `${answered} answered, ${conflicts} conflicts`)
  })
}

function compareRefusals({ gateway, compare, take, test, limitedOperations }: Comparison): void {
  test('every wrong field is refused alike, and at the same place', async () => {
    let refused = 0
    for (const { name, entry } of limitedOperations()) {
      for (const { what, input } of mistakesOf(entry)) {
        const [reply] = await compare(what, { name, input, ...credentialFor(name) })
        if (codeOf(reply) === 'validation') refused++
      }
    }
    assert.ok(refused >= 300, `${refused} refused`)
  })

  test('a credential that is none, and one that may not do it, are refused alike', async () => {
    const met = new Set<string>()
    for (const { name, entry } of gateway().operations) {
      const { access } = entry
      if (access === 'public') continue
      const refusals = await Promise.all(gateway().twins.map(({ user }) => user.refusals(access)))
      for (const code of Object.keys(refusals[0]!) as FaultCode[]) {
        const authorization: Authorization = (twin) => {
          const token = refusals[gateway().twins.indexOf(twin)]?.[code]
          return token && `Bearer ${token}`
        }
        const [reply] = await compare(code, { name, input: minimalInput(entry), authorization })
        assert.equal(codeOf(reply), code, name)
        met.add(code)
      }
    }
    assert.ok(met.has('insufficient_scope') && met.size >= 3, String([...met]))
  })

  test("an id that is nobody's is refused alike", async () => {
    const absentId = '01890000-0000-7000-8000-000000000000'
    let asked = 0
    for (const { name, entry } of gateway().operations) {
      const ids = [...namesIn(entry.params), ...namesIn(entry.body)].filter((field) =>
        /^(?:task|position|order|agent)_id$/.test(field),
      )
      for (const field of ids) {
        asked++
        // An operation that accepts any id answers at the end of its task what it has not found.
        const input = { ...minimalInput(entry), [field]: absentId, ...(takesWait(entry) ? wait : {}) }
        await compare(field, { name, input })
      }
    }
    assert.ok(asked >= 8, `${asked} ids`)
  })

  // It leaves trading stopped.
  test('what only a person who has just signed in does is refused alike', () => take(actsOfPeople))

  test('a budget that is spent is refused alike by every operation that it limits', async () => {
    const { invocation, twins } = gateway()
    // Renewed while there is a budget for it.
    await Promise.all(twins.map(({ user }) => user.token()))
    const spend = async (rate: RateClass, key: string) => {
      for (let spent = 0; spent <= points; spent++) await invocation.limits.consume(rate, key)
    }
    await spend('auth', addressKey(loopback))
    for (const { userId } of twins)
      for (const rate of ['read', 'money', 'exit', 'stream'] as const) await spend(rate, `user:${userId}`)
    for (const { name, entry } of limitedOperations()) {
      const [reply] = await compare('spent', { name, input: minimalInput(entry) })
      assert.equal(codeOf(reply), 'rate_limited', name)
    }
  })
}
