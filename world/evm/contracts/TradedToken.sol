// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// A token as launched by strangers: it may tax its trades, and its owner may stop sales at any time. Everything is in
/// storage, so that one bytecode can be placed at many addresses, behind a proxy too.
contract TradedToken is ERC20 {
    uint256 private constant BPS = 10_000;

    address public owner;
    address public pool;
    uint256 public buyTaxBps;
    uint256 public sellTaxBps;
    bool public salesStopped;
    /// Who received tokens in a block cannot send any in it.
    bool public hasCooldown;
    mapping(address => uint256) private _receivedAt;

    error NotOwner();
    error LaunchedBefore();
    error SalesStopped();
    error CoolingDown();

    struct Terms {
        address owner;
        uint256 buyTaxBps;
        uint256 sellTaxBps;
        bool hasCooldown;
    }

    modifier onlyOwner() {
        require(msg.sender == owner, NotOwner());
        _;
    }

    constructor() ERC20("", "") {}

    /// Mints the whole supply, once: one part to the pool, the rest to the holder.
    function launch(address pool_, uint256 pooled, address holder, uint256 held, Terms calldata terms) external {
        require(totalSupply() == 0, LaunchedBefore());
        _mint(pool_, pooled);
        _mint(holder, held);
        pool = pool_;
        owner = terms.owner;
        buyTaxBps = terms.buyTaxBps;
        sellTaxBps = terms.sellTaxBps;
        hasCooldown = terms.hasCooldown;
    }

    function setTaxes(uint256 buyBps, uint256 sellBps) external onlyOwner {
        buyTaxBps = buyBps;
        sellTaxBps = sellBps;
    }

    function setSalesStopped(bool stopped) external onlyOwner {
        salesStopped = stopped;
    }

    function _update(address from, address to, uint256 value) internal override {
        bool isTrade = from != address(0) && pool != address(0) && from != owner;
        if (isTrade && hasCooldown) {
            if (from != pool) require(_receivedAt[from] != block.number, CoolingDown());
            _receivedAt[to] = block.number;
        }
        uint256 tax = 0;
        if (isTrade && from == pool) tax = (value * buyTaxBps) / BPS;
        if (isTrade && to == pool) {
            require(!salesStopped, SalesStopped());
            tax = (value * sellTaxBps) / BPS;
        }
        if (tax > 0) super._update(from, owner, tax);
        super._update(from, to, value - tax);
    }
}
