/** The pages load no font and no image from elsewhere. */
export const styles = `
:root{color-scheme:light dark;--ground:#f3f4f1;--card:#fff;--ink:#16211c;--soft:#5b6962;--line:#d8ddd8;--accent:#0d6b4f;--accent-ink:#fff;--tint:#eaf4ef;--bad:#a4262c;--bad-tint:#fdeeee;--field:#7a8881;--wait:#7a4a00;--wait-tint:#fdf1dc}
@media(prefers-color-scheme:dark){:root{--ground:#0e1412;--card:#17201c;--ink:#eef3f0;--soft:#9fb0a8;--line:#2c3833;--accent:#4cc79b;--accent-ink:#06231a;--tint:#1b2c25;--bad:#ff9a9a;--bad-tint:#3a1c1e;--field:#6f8078;--wait:#f3c06b;--wait-tint:#3a2c12}}
*{box-sizing:border-box}
html{font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;-webkit-text-size-adjust:100%}
body{margin:0;min-height:100vh;min-height:100dvh;background:var(--ground);color:var(--ink);display:flex;flex-direction:column;align-items:center;justify-content:center;padding:24px 16px}
main{width:100%;max-width:440px;background:var(--card);border:1px solid var(--line);border-radius:16px;padding:32px;box-shadow:0 1px 2px #0000000a,0 12px 32px #0000000f}
.brand{display:flex;align-items:center;gap:10px;font-weight:650;letter-spacing:.01em;margin-bottom:24px}
.brand svg{width:28px;height:28px;color:var(--accent);flex:none}
h1{font-size:1.45rem;line-height:1.25;letter-spacing:-.01em;margin:0 0 6px;overflow-wrap:anywhere}
p{margin:0 0 16px}.soft{color:var(--soft)}.below{margin:18px 0 0}.small{font-size:.875rem}
label{display:block;font-weight:600;font-size:.9rem;margin:16px 0 6px}
input{width:100%;font:inherit;color:inherit;background:var(--card);border:1px solid var(--field);border-radius:10px;padding:11px 13px;min-height:46px}
input:focus,button:focus-visible,a:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-color:var(--accent)}
.code{font-size:1.5rem;letter-spacing:.4em;text-align:center;font-variant-numeric:tabular-nums}
.hint{color:var(--soft);font-size:.85rem;margin:6px 0 0}
button{font:inherit;font-weight:650;width:100%;min-height:48px;border-radius:10px;border:1px solid transparent;cursor:pointer;padding:10px 16px}
.main{background:var(--accent);color:var(--accent-ink);margin-top:22px}.main:hover{filter:brightness(1.07)}
.quiet{background:transparent;color:var(--ink);border-color:var(--line);margin-top:10px}.quiet:hover{background:var(--tint)}
a{color:var(--accent);font-weight:600;text-underline-offset:2px}
.links{margin:20px 0 0;padding-top:18px;border-top:1px solid var(--line);font-size:.92rem;display:flex;flex-wrap:wrap;gap:6px 18px;justify-content:space-between}
.error{background:var(--bad-tint);color:var(--bad);border-radius:10px;padding:11px 14px;margin:16px 0 0;font-size:.94rem}
.who{background:var(--tint);border-radius:12px;padding:14px 16px;margin:18px 0;display:grid;gap:8px;font-size:.94rem}
.who div{display:flex;gap:12px;justify-content:space-between;align-items:baseline}.who dt{color:var(--soft);flex:none}.who dd{margin:0;font-weight:600;text-align:right;overflow-wrap:anywhere;min-width:0}
dl{margin:0}
h2{font-size:.95rem;margin:20px 0 8px}
ul{list-style:none;margin:0;padding:0;display:grid;gap:10px}
li{display:flex;gap:10px;align-items:flex-start;font-size:.95rem}li svg{width:20px;height:20px;flex:none;margin-top:2px;color:var(--accent)}li.never svg{color:var(--soft)}li.never{color:var(--soft)}
fieldset{border:1px solid var(--line);border-radius:12px;margin:20px 0 0;padding:6px 16px 12px}legend{font-weight:600;font-size:.95rem;padding:0 6px}
.choice{display:flex;gap:10px;align-items:flex-start;font-weight:400;font-size:.95rem;margin:10px 0 0;cursor:pointer}.choice input{width:20px;height:20px;min-height:0;flex:none;margin:1px 0 0;accent-color:var(--accent)}.amount{align-items:center;margin-left:30px}.amount input{width:6.5em;height:34px;padding:4px 8px;margin:0}
[hidden]{display:none!important}
.or{display:flex;align-items:center;gap:12px;color:var(--soft);font-size:.85rem;margin:18px 0 8px}.or::before,.or::after{content:"";flex:1;border-top:1px solid var(--line)}
button svg{width:20px;height:20px;flex:none}button:has(svg){display:flex;align-items:center;justify-content:center;gap:10px}button:disabled{opacity:.6;cursor:progress}
form[data-kind] .quiet{margin-top:0}
.wide{max-width:640px}section{margin:28px 0 0}section+form{margin-top:28px}section h2{font-size:1.05rem;margin:0 0 10px}
.notice{background:var(--tint);border-radius:10px;padding:11px 14px;margin:16px 0 0;font-size:.94rem}
.rows{gap:0;border:1px solid var(--line);border-radius:12px;overflow:hidden}.row{display:block;padding:14px 16px;position:relative}.row+.row{border-top:1px solid var(--line)}
.what{display:grid;gap:2px;overflow-wrap:anywhere}.what>strong{padding-right:110px}.what .small svg{width:15px;height:15px;margin:0 6px -3px 0}
summary{position:absolute;top:9px;right:10px;cursor:pointer;list-style:none;font-weight:600;font-size:.9rem;color:var(--accent);padding:5px 8px;border-radius:8px}summary::-webkit-details-marker{display:none}summary:hover{background:var(--tint)}summary:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.below>summary{position:static;display:inline-block;margin-left:-8px}.confirm{border-top:1px solid var(--line);margin-top:12px;padding-top:12px}.confirm p{margin:0 0 10px}
.bad{background:transparent;color:var(--bad);border-color:var(--bad)}.bad:hover{background:var(--bad-tint)}
.empty{border:1px dashed var(--line);border-radius:12px;padding:14px 16px;font-size:.94rem}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
footer{color:var(--soft);font-size:.82rem;margin-top:20px;text-align:center;max-width:440px}
.done{display:flex;gap:10px;background:var(--tint);border-radius:10px;padding:11px 14px;margin:16px 0 0;font-size:.94rem}.done svg{width:20px;height:20px;flex:none;margin-top:1px;color:var(--accent)}
.asks{border:1px solid var(--line);border-radius:14px;padding:20px;margin:18px 0 0}
.asks h2{font-size:1.1rem;line-height:1.35;margin:0;overflow-wrap:anywhere}
.asks .who{margin:14px 0;gap:10px}
.asks .who div{display:grid;grid-template-columns:7.5rem 1fr;gap:12px}.asks .who dd{text-align:left}
.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.9em;overflow-wrap:anywhere}
.choices{display:grid;grid-template-columns:1fr 1fr;gap:12px}.choices button{margin-top:0}
.bad{background:transparent;color:var(--bad);border-color:var(--line)}.bad:hover{background:var(--bad-tint)}
.none{text-align:center;padding:28px 8px 12px}.none svg{width:44px;height:44px;color:var(--accent);margin-bottom:8px}.none p{margin:0 auto;max-width:36ch}
.who-asks{margin:0 0 4px}
.facts{margin:0 0 14px}.facts div{display:grid;grid-template-columns:8.5rem 1fr;gap:12px}.facts dd{text-align:left}
.badge{display:inline-block;font-size:.75rem;font-weight:650;line-height:1;padding:4px 8px;border-radius:99px;margin-left:8px;vertical-align:2px;background:var(--wait-tint);color:var(--wait)}
.stopped{color:var(--bad)}
.fresh{border:1px solid var(--line);border-radius:12px;padding:14px 16px;margin:18px 0 0;display:flex;gap:12px 18px;align-items:center;flex-wrap:wrap}.fresh p{margin:0;flex:1 1 16rem}.fresh form{flex:0 0 auto}.fresh button{margin:0;width:auto;min-height:44px}
.back{margin:0 0 14px;font-size:.92rem}.back a::before{content:"‹ "}
.next{margin:12px 0 0}.button{display:flex;align-items:center;justify-content:center;min-height:48px;border-radius:10px;border:1px solid var(--line);padding:10px 16px;font-weight:650;text-decoration:none;color:var(--ink)}a.button.quiet{margin-top:0}
.wide-code{font-size:1.25rem;letter-spacing:.12em;text-transform:uppercase}.wide-code::placeholder{color:var(--soft);opacity:.55}
.rows.first{margin-top:18px}
@media(max-width:480px){.facts div{grid-template-columns:1fr;gap:0}.fresh form,.fresh button{width:100%}}
@media(max-width:480px){.asks{padding:16px}.asks .who div{grid-template-columns:1fr;gap:0}}
@media(max-width:480px){body{justify-content:flex-start;padding:12px}main{padding:24px 20px}}
`
