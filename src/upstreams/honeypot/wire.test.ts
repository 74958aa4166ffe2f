import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assessReply } from './wire.ts'

const address = '0xAbCd'
const report = {
  token: { address: '0xabcd', name: 'A' },
  summary: { risk: 'very_low', riskLevel: 0, flags: [] },
  simulationSuccess: true,
  honeypotResult: { isHoneypot: false },
  simulationResult: { buyTax: 0, sellTax: 0, transferTax: 0 },
  contractCode: { openSource: true },
}
const judged = (changes: object, status = 200) => {
  const { verdict, isHoneypot, reasons } = assessReply({ status, body: { ...report, ...changes } }, address)
  return [verdict, isHoneypot, reasons.map(({ code, level }) => `${code}:${level}`).join()]
}

test('a complete report without a risk is safe', () => {
  assert.deepEqual(judged({}), ['safe', false, ''])
})

test('a simulation that failed leaves the result absent, which is not a no', () => {
  const { honeypotResult: _, simulationResult: __, ...failed } = report
  const body = { ...failed, simulationSuccess: false, summary: { risk: 'unknown' } }
  const { verdict, isHoneypot } = assessReply({ status: 200, body }, address)
  assert.deepEqual([verdict, isHoneypot], ['unknown', null])
})

test('no absent or malformed field counts as harmless', () => {
  for (const name of ['summary', 'simulationSuccess', 'honeypotResult', 'simulationResult'])
    for (const value of [undefined, null, 'false', {}, []])
      assert.equal(judged({ [name]: value })[0], 'unknown', `${name}: ${JSON.stringify(value)}`)
  for (const tax of [undefined, null, '0', -1, 101, Number.NaN])
    assert.equal(judged({ simulationResult: { buyTax: tax, sellTax: 0 } })[0], 'unknown', String(tax))
})

test('a honeypot is one in whatever state the rest of the report is', () => {
  const found = judged({ honeypotResult: { isHoneypot: true }, simulationSuccess: false, summary: null })
  assert.deepEqual(found, ['risky', true, 'honeypot:honeypot'])
})

test('the risk of the service counts as it is, and an unknown word is unknown', () => {
  assert.deepEqual(judged({ summary: { risk: 'high' } })[0], 'risky')
  assert.deepEqual(judged({ summary: { risk: 'medium' } })[0], 'safe')
  assert.deepEqual(judged({ summary: { risk: 'fine' } })[0], 'unknown')
})

test('taxes are percentages, rounded up to a hundredth', () => {
  const body = { ...report, simulationResult: { buyTax: 2.999, sellTax: 24.9850001, transferTax: 0.07 } }
  const { buyTaxBps, sellTaxBps, transferTaxBps } = assessReply({ status: 200, body }, address)
  assert.deepEqual([buyTaxBps, sellTaxBps, transferTaxBps], [300, 2_499, 7])
})

test('a report about another token, and a body that is no report, are refused', () => {
  assert.throws(() => judged({ token: { address: '0xabce' } }), { code: 'unavailable' })
  assert.throws(() => judged({ token: null }), { code: 'unavailable' })
  assert.throws(() => assessReply({ status: 200, body: [] }, address), { code: 'unavailable' })
  assert.throws(() => judged({}, 401), { code: 'unavailable' })
  assert.deepEqual(judged({}, 404)[0], 'unknown')
})
