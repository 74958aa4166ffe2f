/** Which operations a chat may recommend or call: an addition to the interface does not become one by itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Tool, toolsOf } from '#features/chat/tool-registry.ts'
import { type Operation, operationName } from '#kernel/contract/operation.ts'
import { contracts } from '../../src/contracts.ts'

const operations = contracts.flatMap(({ group, entries }) =>
  Object.entries(entries).map(
    ([key, entry]) =>
      ({ name: operationName(group, key), group, entry, run: () => undefined }) as unknown as Operation,
  ),
)
const tools = toolsOf(operations)
const namesOf = (isWanted: (tool: Tool) => boolean) =>
  [...tools].flatMap(([name, tool]) => (isWanted(tool) ? [name] : [])).toSorted()

test('what a chat may recommend moves money of its user or ends an order, and gives nobody access', () => {
  assert.deepEqual(
    namesOf(({ effectOf }) => effectOf({}) === 'change'),
    [
      'credits_recharge',
      'earn_deposit',
      'earn_enable',
      'earn_sync',
      'earn_withdraw',
      'hooks_register',
      'limit_orders_cancel',
      'limit_orders_create',
      'outstanding_orders_cancel',
      'perp_cancel',
      'perp_cancel_all',
      'perp_close',
      'perp_fund',
      'perp_open',
      'perp_setup',
      'perp_tp_sl',
      'perp_withdraw',
      'predmkt_cancel',
      'predmkt_fund',
      'predmkt_order',
      'predmkt_redeem',
      'predmkt_setup',
      'predmkt_setup_v2',
      'predmkt_withdraw',
      'spot_venue_buy',
      'spot_venue_cancel',
      'spot_venue_cancel_all',
      'spot_venue_sell',
      'spot_venue_tp_sl',
      'swap_execute',
      'wallets_transfer',
    ],
  )
})

test('what a chat calls by the words of its user alone can only restrict', () => {
  assert.deepEqual(
    namesOf(({ effectOf }) => effectOf({}) === 'tighten'),
    ['policy_kill', 'policy_tighten', 'tasks_cancel'],
  )
})

test('a tool that reads is a read of the interface, or a dry run', () => {
  for (const [name, { operation, hasDryRun, effectOf }] of tools) {
    if (effectOf({}) === 'read') assert.equal(operation.entry.kind, 'read', name)
    assert.equal(effectOf({ dryrun: true }) === 'read', operation.entry.kind === 'read' || hasDryRun, name)
    assert.doesNotMatch(name, /^(auth|webhooks|chat)_|_disclaimer$/)
  }
})
