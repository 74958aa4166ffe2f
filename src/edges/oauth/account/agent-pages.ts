import { alert, cross, escapeHtml, field, page, shownName, tick } from '#edges/oauth/pages.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { buttonForm, confirmed, dayOf, rowOf, sectionOf, softLine } from './account-html.ts'
import type { Agent, AgentAccount } from './account-reader.ts'
import { type LimitView, limitSection, recipientSection, tradingSection } from './limit-sections.ts'
import { activitySection } from './money-sections.ts'

const nameOf = ({ name, agent_id: agentId }: Agent): string => shownName(name ?? '') || agentId
export const agentPath = (agentId: string): string =>
  `${oauthPaths.account}/agents/${encodeURIComponent(agentId)}`

const unlinkForm = (agent: Agent): string =>
  confirmed(
    { act: 'Unlink', what: nameOf(agent) },
    'You decide for it no more. Raised limits and recipients that still wait are dropped, and what is in effect stays. An agent that you have stopped stays stopped.',
    buttonForm('agent-unlink', 'Unlink this agent', { fields: { agent_id: agent.agent_id } }),
  )

const agentRow = (agent: Agent): string =>
  rowOf({
    title: `<a href="${escapeHtml(agentPath(agent.agent_id))}">${escapeHtml(nameOf(agent))}</a>`,
    lines: [
      `<span class="mono small">${escapeHtml(agent.agent_id)}</span>`,
      softLine(`Linked ${dayOf(new Date(agent.linked_at))} · its limits and recipients are on its page`),
    ],
    action: unlinkForm(agent),
  })

type AgentList = { agents: readonly Agent[]; agentsMax: number }
export const agentSection = ({ agents, agentsMax }: AgentList): string =>
  sectionOf({
    id: 'agents',
    title: 'Linked agents',
    rows: agents.map(agentRow),
    empty:
      'No agent is linked. An agent with a key of its own asks you for your decisions once you have linked it.',
    after:
      agents.length < agentsMax
        ? `<p class="next"><a class="button quiet" href="${oauthPaths.link}">Link an agent</a></p>`
        : `<p class="small soft below">A person has at most ${agentsMax} agents.</p>`,
  })

export type AgentView = AgentAccount & LimitView & { notice: string | undefined; error: string | undefined }
export function agentPage(view: AgentView): string {
  const { agent, notice, error } = view
  const name = nameOf(agent)
  return page(
    name,
    `<p class="back"><a href="${oauthPaths.account}">Your account</a></p><h1>${escapeHtml(name)}</h1><p class="soft"><span class="mono small">${escapeHtml(agent.agent_id)}</span><br>Linked ${dayOf(new Date(agent.linked_at))}</p>${noticeOf(notice)}${alert(error)}${tradingSection(view)}${activitySection({ tasks: view.tasks, askerOf: () => 'By this agent', empty: 'This agent has done nothing yet.' })}${limitSection(view)}${recipientSection(view)}<section aria-labelledby="link"><h2 id="link">Link</h2><ul class="rows">${rowOf(
      {
        title: 'This agent is linked to you',
        lines: [softLine('It keeps its wallets and its key. You see them, and decide for it.')],
        action: unlinkForm(agent),
      },
    )}</ul></section>`,
    { isWide: true },
  )
}

export const noticeOf = (notice: string | undefined): string =>
  notice === undefined ? '' : `<p class="notice" role="status">${escapeHtml(notice)}</p>`

export type LinkView = {
  email: string
  code: string
  name: string
  notice: string | undefined
  error: string | undefined
}
export const linkPage = ({ email, code, name, notice, error }: LinkView): string =>
  page(
    'Link an agent',
    `<p class="back"><a href="${oauthPaths.account}">Your account</a></p><h1>Link an agent</h1><p class="soft">to <strong>${escapeHtml(email)}</strong>. The agent shows you a code of twelve letters and digits, which is good for 10 minutes.</p>${noticeOf(notice)}${alert(error)}<form method="post" action="${oauthPaths.account}/agent-link">${field(
      'code',
      'Code of the agent',
      `class="code wide-code" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="32" value="${escapeHtml(code)}" placeholder="XXXX-XXXX-XXXX"`,
    )}<label for="name">Your name for it <span class="soft">(optional)</span></label><input id="name" name="name" maxlength="64" autocomplete="off" value="${escapeHtml(name)}"><button class="main">Link this agent</button></form>
<h2>From then on</h2><ul><li>${tick}<span>You decide about its limits, its recipients and its requests, and your kill switch stops it.</span></li><li>${tick}<span>It keeps its wallets and its key, and you see them.</span></li><li class="never">${cross}<span>Link no agent whose code you did not ask for.</span></li></ul>`,
  )
