import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StrategyFill } from './fill-trades.ts'
import { fillsCsv, strategyReportText } from './strategy-report.ts'

const fill: StrategyFill = {
  asset: 'ETH',
  isBuy: true,
  size: '0.01',
  price: '2000',
  feeUsd: '0.009',
  realizedUsd: null,
  reason: 'due',
  isExit: false,
  executionId: 'run-1',
  atMs: Date.UTC(2026, 0, 5, 14),
}
const report = {
  title: 'Monday\nETH',
  subtitle: 'Run 1 of version 1, live',
  at: new Date(Date.UTC(2026, 0, 5, 14, 1)),
  decision: 'entry: buy 0.01 ETH at the market, because its time has come',
  figures: undefined,
  equityUsd: '999.991',
  initialUsd: '1000',
  budgetUsd: '500',
  fills: [fill],
  drift: null,
}

test('a report names its run, its decision and its fills, and its title stays one line', () => {
  const text = strategyReportText(report)
  assert.ok(text.startsWith('# Monday ETH\nRun 1 of version 1, live, ended at 2026-01-05T14:01:00.000Z.\n'))
  assert.match(text, /^Decision: entry: buy 0\.01 ETH/m)
  assert.match(text, /^\| Worth \| 999\.99 USD \|$/m)
  assert.match(
    text,
    /^\| 2026-01-05T14:00:00\.000Z \| buy 0\.01 ETH at 2000 \| 20 \| 0\.009 \| {2}\| due \|$/m,
  )
  assert.match(text, /^Not compared yet\.$/m)
})

test('a report shows at most the newest 20 fills, and the file of fills has them all', () => {
  const fills = Array.from({ length: 30 }, (_, n) => ({ ...fill, size: `0.${n + 10}` }))
  const shown = strategyReportText({ ...report, fills }).match(/^\| \d{4}-.*\| due \|$/gm)
  assert.deepEqual([shown?.length, shown?.[0]?.includes('0.20 ETH')], [20, true])
  const lines = fillsCsv(fills).trimEnd().split('\r\n')
  assert.equal(lines.length, 31)
  assert.equal(lines[1], '2026-01-05T14:00:00.000Z,ETH,buy,0.10,2000,200,0.009,,due,false,run-1')
})
