// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {DollarVault} from "./DollarVault.sol";

/// The venue's dollar. Wrappers turn USDC and USDC.e into it and back; modules burn it when positions of protocol v2 are
/// opened and mint it when they are closed. Every unit, and every burned unit behind a position, is in the vault.
contract PolymarketUsd is ERC20 {
    using SafeERC20 for IERC20;

    /// Burned by modules and not minted again: the backing of open positions.
    uint256 public locked;

    error NotWrapper(address caller);
    error NotModule(address caller);
    error NotAnAsset(address asset);

    event Wrapped(address indexed caller, address indexed asset, address indexed to, uint256 amount);
    event Unwrapped(address indexed caller, address indexed asset, address indexed to, uint256 amount);

    constructor() ERC20("", "") {}

    function name() public pure override returns (string memory) {
        return "Polymarket USD";
    }

    function symbol() public pure override returns (string memory) {
        return "pUSD";
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }

    function wrap(address asset, address to, uint256 amount) external {
        _checkWrapper(asset);
        IERC20(asset).safeTransferFrom(msg.sender, Addresses.VAULT, amount);
        _mint(to, amount);
        emit Wrapped(msg.sender, asset, to, amount);
    }

    function unwrap(address asset, address to, uint256 amount) external {
        _checkWrapper(asset);
        _burn(msg.sender, amount);
        DollarVault(Addresses.VAULT).pay(asset, to, amount);
        emit Unwrapped(msg.sender, asset, to, amount);
    }

    /// Reverts where more would be minted than modules have burned.
    function mint(address to, uint256 amount) external {
        _checkModule();
        locked -= amount;
        _mint(to, amount);
    }

    function burn(uint256 amount) external {
        _checkModule();
        locked += amount;
        _burn(msg.sender, amount);
    }

    function _checkWrapper(address asset) private view {
        require(
            msg.sender == Addresses.ONRAMP || msg.sender == Addresses.OFFRAMP
                || msg.sender == Addresses.COLLATERAL_ADAPTER
                || msg.sender == Addresses.NEG_RISK_COLLATERAL_ADAPTER,
            NotWrapper(msg.sender)
        );
        require(asset == Addresses.USDC || asset == Addresses.USDCE, NotAnAsset(asset));
    }

    function _checkModule() private view {
        require(
            msg.sender == Addresses.BINARY_MODULE || msg.sender == Addresses.NEG_RISK_MODULE,
            NotModule(msg.sender)
        );
    }
}
