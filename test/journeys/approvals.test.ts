/** What policy reserves for a person waits, runs once after the approval, and moves nothing without it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway, signedAct } from '../harness/gateway.ts'
import { personWithApp, type SignedIn, signedInPerson } from './signed-in.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, type World, worldOf } from './world.ts'

const friend = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

type Waiting = TaskBody & {
  approval: { approval_id: string; expires_at: string; confirm_url: string | null } | null
}
type Approval = {
  approval_id: string
  task_id: string
  intent: Record<string, string | null>
  intent_sha256: string
}
type Answer = {
  code?: string
  rule?: string
  requires?: string
  confirm_url?: string
  intent_sha256?: string
  decision?: string
  detail?: unknown
}

describe('approvals', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({ COOLING_SECONDS: '4' })
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const funded = async () => {
    const both = await personWithApp(gateway)
    await world.fund(base, both.person.evm, 'USDC', '200')
    await world.fund(base, both.person.evm, 'native', '1')
    return both
  }
  const addFriend = async (person: Person, agents: string) => {
    const added = await person.call<{ status: string }>('POST /v1/recipients', {
      body: { chain_id: base, address: friend, label: 'Friend', agents },
    })
    assert.equal(added.status, 200, JSON.stringify(added.body))
    await eventually(
      async () => {
        const { recipients } = (await person.call<{ recipients: { status: string }[] }>('GET /v1/recipients'))
          .body
        return recipients.every(({ status }) => status === 'effective') || undefined
      },
      'the recipient is effective',
      20_000,
    )
  }
  const send = (who: Person, amount: string, key?: string) =>
    who.call<Waiting>('POST /v1/wallets/transfer', {
      body: { chain_id: base, token: 'USDC', amount: `${amount}000000`, recipient: friend },
      ...(key && { key }),
    })
  const waitingOf = async (who: Person) =>
    (await who.call<{ approvals: Approval[]; max: number }>('GET /v1/approvals')).body.approvals
  /** Calls the interface, as an app or an agent would. */
  const approve = (who: Person, id: string, body?: object) =>
    who.call<Answer>(`POST /v1/approvals/${id}/approve`, body ? { body } : {})
  const assertApproved = async (who: SignedIn, id: string) =>
    assert.match((await who.decide(id)) ?? 'it does not wait', /^Approved/)
  const assertWaits = (body: Waiting) =>
    assert.deepEqual([body.status, body.state, body.outcome], ['pending', 'awaiting_approval', null])

  test('a swap of an agent that may lose more than usual waits for its person, and is executed once approved', async () => {
    const { person, app } = await funded()
    const body = { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '20000000' }
    const asked = await app.call<Waiting>('POST /v1/swap', { body: { ...body, max_price_impact_bps: 2_501 } })
    assertWaits((await app.task(asked.body.task_id)) as Waiting)
    const [approval] = await waitingOf(person)
    assert.equal(approval?.intent.rule, 'loss_bound')
    assert.match(String(approval?.intent.text), /^Accept a loss of up to 25.01 % and swap 20 USDC/)
    await assertApproved(person, approval!.approval_id)
    const ended = await app.ended(asked.body.task_id, 60_000)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
  })

  test('a transfer of an agent waits for its person, and then arrives once under its own task', async () => {
    const { person, app } = await funded()
    await addFriend(person, 'approval')
    const before = await world.usdcOf(friend)

    const asked = await send(app, '25', 'once')
    assert.deepEqual([asked.status, asked.body.status], [200, 'pending'])
    assert.match(asked.body.message, /person approves it at http.*\/oauth\/approvals.*Send 25 USDC to 0x3C44/)
    const shown = (await app.task(asked.body.task_id)) as Waiting
    assertWaits(shown)
    assert.equal(asked.body.state, 'awaiting_approval')
    assert.deepEqual(asked.body.approval, shown.approval)
    assert.equal(shown.kind, 'wallets_transfer')
    assert.equal(shown.cancellable, true)
    assert.equal(shown.approval?.confirm_url, `${gateway.url}/oauth/approvals/${shown.approval?.approval_id}`)
    assert.equal((await send(app, '25', 'once')).body.task_id, asked.body.task_id, 'a repetition waits too')
    const timedOut = await app.call<Waiting>('POST /v1/wallets/transfer?wait=true&timeout=5', {
      body: { chain_id: base, token: 'USDC', amount: '25000000', recipient: friend },
      key: 'once',
    })
    assertWaits(timedOut.body)

    const [approval, ...others] = await waitingOf(person)
    assert.ok(approval)
    assert.deepEqual(others, [])
    const { text, chain, token, amount, usd, recipient, agent_id, rule } = approval.intent
    assert.deepEqual(
      { text, chain, token, amount, recipient, agent_id, rule },
      {
        text: `Send 25 USDC to ${friend} on Base`,
        chain: 'Base',
        token: 'USDC',
        amount: '25',
        recipient: friend,
        agent_id: person.agentId,
        rule: 'recipient_approval',
      },
    )
    assert.ok(Math.abs(Number(usd) - 25) < 1, `${usd} USD`)

    const byAgent = await approve(app, approval.approval_id)
    assert.deepEqual(
      [byAgent.status, byAgent.body.code, byAgent.body.requires, byAgent.body.intent_sha256],
      [403, 'step_up_required', 'person', approval.intent_sha256],
    )
    assert.equal(byAgent.body.confirm_url, shown.approval?.confirm_url)
    const stranger = await signedInPerson(gateway)
    assert.deepEqual(await waitingOf(stranger), [])
    assert.equal((await approve(stranger, approval.approval_id)).status, 404)
    assert.equal(await stranger.decide(approval.approval_id), undefined)
    assert.equal(await world.usdcOf(friend), before)

    await assertApproved(person, approval.approval_id)
    const ended = await app.ended(asked.body.task_id, 60_000)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    assert.equal((await world.usdcOf(friend)) - before, 25_000_000n)
    assert.deepEqual(await waitingOf(person), [])
    const late = await person.call<Answer>(`POST /v1/approvals/${approval.approval_id}/decline`)
    assert.deepEqual([late.status, late.body.code], [409, 'conflict'])
    assert.equal((await world.usdcOf(friend)) - before, 25_000_000n)
    const { events } = (
      await person.call<{ events: { type: string; task_id: string }[] }>(
        'GET /v1/notifications?types=approval.requested,approval.decided',
      )
    ).body
    assert.deepEqual(
      events.slice(-2).map(({ type, task_id }) => [type, task_id === asked.body.task_id]),
      [
        ['approval.requested', true],
        ['approval.decided', true],
      ],
    )
  })

  test('above the limit everything but exits waits, for an app right after a sign-in too', async () => {
    const { person, app } = await funded()
    await addFriend(person, 'allowed')
    const limited = await app.call<{ approval_above_usd: string }>('PUT /v1/policy', {
      body: { approval_above_usd: '30' },
    })
    assert.deepEqual([limited.status, limited.body.approval_above_usd], [200, '30'], 'an agent tightens')
    const raised = await app.call<{ approval_above_usd: string }>('PUT /v1/policy', {
      body: { approval_above_usd: null },
    })
    assert.equal(raised.body.approval_above_usd, '30', 'it waits for the person')
    await app.call(`POST /v1/approvals/${(await waitingOf(person))[0]!.approval_id}/decline`)

    const small = await send(app, '5')
    assert.equal((await app.ended(small.body.task_id, 60_000)).status, 'completed')
    const large = await send(app, '40')
    assertWaits((await app.task(large.body.task_id)) as Waiting)

    const deposit = await app.deposit('50', { query: '' })
    assertWaits((await app.task(deposit.body.task_id)) as Waiting)
    const ofDeposit = (await waitingOf(person)).find(({ task_id }) => task_id === deposit.body.task_id)!
    assert.equal(ofDeposit.intent.text, 'Deposit 50 USDC into the vault')
    await assertApproved(person, ofDeposit.approval_id)
    const deposited = await app.ended(deposit.body.task_id, 60_000)
    assert.deepEqual(
      [deposited.status, deposited.outcome],
      ['completed', 'executed'],
      JSON.stringify(deposited),
    )
    const withdrawn = await app.withdraw({ position_id: deposited.result.position_id, amount_usdc: null })
    assert.equal(withdrawn.body.status, 'completed', JSON.stringify(withdrawn.body))

    const ofLarge = (await waitingOf(person)).find(({ task_id }) => task_id === large.body.task_id)!
    await person.call('POST /v1/kill', { body: { on: true } })
    await assertApproved(person, ofLarge.approval_id)
    const stopped = await app.ended(large.body.task_id, 30_000)
    assert.deepEqual(
      [stopped.status, stopped.outcome, stopped.error?.code],
      ['failed', 'not_executed', 'trading_paused'],
    )
    await person.call('POST /v1/kill', { body: { on: false } })
  })

  test('the person to whom an agent with a key pair is linked decides, once the link is established', async () => {
    const { person } = await funded()
    const agent = await createFundedPerson(gateway.url)
    await agent.call('PUT /v1/policy', { body: { approval_above_usd: '5' } })
    const unlinked = await agent.deposit('10', { query: '' })
    assert.deepEqual([unlinked.status, unlinked.body.code], [403, 'approval_required'])
    const bought = await agent.call<TaskBody>('POST /v1/swap?wait=true', {
      body: { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '4000000' },
    })
    assert.equal(bought.body.status, 'completed', JSON.stringify(bought.body))
    const { code } = (
      await agent.call<{ code: string }>('POST /v1/agents/link-codes', {
        body: signedAct(agent, 'agents_link_code'),
      })
    ).body
    assert.equal((await person.call('POST /v1/agents', { body: { code, name: 'Trader' } })).status, 200)

    const hook = await agent.call<Waiting>('POST /v1/hooks', {
      body: {
        chain_id: base,
        token_address: 'WETH',
        stop_losses: [{ price_percentage: '0.1', sell_percentage: '0.5' }],
        reference: 'mark',
        max_price_impact_bps: 5_000,
      },
    })
    const asked = hook.body.approval!.approval_id
    assert.match((await person.decide(asked)) ?? '', /linked a short time ago/)
    const { details, text } = (await waitingOf(person))[0]!.intent as unknown as {
      details: { name: string; value: string }[]
      text: string
    }
    assert.match(text, new RegExp(`WETH of the agent ${agent.agentId} with a loss of up to 50 %`))
    assert.deepEqual(
      details.flatMap(({ name, value }) => (name === 'Stop loss' || name === 'Chain' ? value : [])),
      ['Base', 'Sells 50 % of the balance at 10 % below what a sale would bring when you confirm it'],
    )

    const deposit = await agent.deposit('10', { query: '' })
    assertWaits((await agent.task(deposit.body.task_id)) as Waiting)
    const [approval] = await waitingOf(person)
    assert.deepEqual([approval!.task_id, approval!.intent.agent_id], [deposit.body.task_id, agent.agentId])
    assert.match((await person.decide(approval!.approval_id)) ?? '', /linked a short time ago/)
    const byAgent = await approve(agent, approval!.approval_id)
    assert.deepEqual([byAgent.status, byAgent.body.requires], [403, 'person'])
    const { linked_to } = (await agent.call<{ linked_to: { unlink_until: string } }>('GET /v1/agents')).body
    const isEstablished = async () => Date.now() > Date.parse(linked_to.unlink_until) || undefined
    await eventually(isEstablished, 'the link is established')
    await assertApproved(person, approval!.approval_id)
    assert.equal((await agent.ended(deposit.body.task_id, 60_000)).status, 'completed')
    for (const reader of [person, agent]) {
      const { events } = (
        await reader.call<{ events: { data: { task_id: string } }[] }>(
          'GET /v1/notifications?types=approval.requested,approval.decided',
        )
      ).body
      assert.deepEqual(
        events.slice(-2).map(({ data }) => data.task_id),
        [deposit.body.task_id, deposit.body.task_id],
      )
    }
    assert.match((await person.decide(asked)) ?? '', /^(Approved|Confirmed)/)
    assert.equal((await agent.ended(hook.body.task_id, 20_000)).status, 'completed')
    const hooksOf = async (who: Person) =>
      (
        await who.call<{ outstanding_orders: { symbol: string }[] }>('GET /wallet/outstanding-orders')
      ).body.outstanding_orders.map(({ symbol }) => symbol)
    assert.deepEqual([await hooksOf(agent), await hooksOf(person)], [['WETH'], []])
  })

  test('a declined and a cancelled request move nothing, and a shortage is refused before a person is asked', async () => {
    const { person, app } = await funded()
    await addFriend(person, 'approval')
    const before = await world.usdcOf(friend)
    const short = await send(app, '20000')
    assert.deepEqual([short.status, short.body.code], [409, 'insufficient_balance'])
    const declined = await send(app, '10')
    const cancelled = await send(app, '11')
    const [newest, oldest] = await waitingOf(person)
    assert.deepEqual([newest!.task_id, oldest!.task_id], [cancelled.body.task_id, declined.body.task_id])
    assert.equal((await person.call<Answer>(`POST /v1/approvals/${oldest!.approval_id}/decline`)).status, 200)
    await app.call(`POST /v1/tasks/${cancelled.body.task_id}/cancel`)
    const ends = []
    for (const { body } of [declined, cancelled]) {
      const { status, outcome, error } = await app.ended(body.task_id, 20_000)
      ends.push([status, outcome, error?.code])
    }
    assert.deepEqual(ends, [
      ['failed', 'not_executed', 'approval_declined'],
      ['cancelled', 'not_executed', 'cancelled_by_user'],
    ])
    assert.deepEqual(await waitingOf(person), [])
    assert.equal(await world.usdcOf(friend), before)
  })
})
